"""Which addresses a page is fetched from: a corpus of ways to aim at private networks."""

import pytest

from koboshi.tools.web.addresses import is_public

PRIVATE = """
    127.0.0.1 127.255.255.254 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254
    100.64.0.1 192.0.0.8 192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 240.0.0.1
    255.255.255.255 ::1 :: fe80::1 fe80::1%eth0 fc00::1 fd12:3456::1 fec0::1 ff02::1 2001:db8::1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:7f00:1 ::127.0.0.1 ::10.0.0.1 64:ff9b::7f00:1
    64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1::
    2002:c0a8:101::1 2001:0:4136:e378:8000:63bf:f5ff:fffe 100::1 2001:10::1 localhost 127.1 1 0x7f.1
""".split()
PUBLIC = (
    "8.8.8.8 93.184.216.34 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1".split()
)


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_leads_into_a_private_network_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public_whatever_it_is_wrapped_in(address: str) -> None:
    assert is_public(address)
