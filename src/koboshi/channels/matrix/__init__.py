"""Matrix: rooms of a homeserver, by its client-server interface.

Theory of operation. The package is an own thin client. `next_batch` is the cursor, in the
transaction of its events; a limited room is read forward from the old place. Sends are `PUT` with
the send key, which the event carries as well, so `find` can look for it. The send key has a random
id of the database (`send_ids`), which a restore renews: ids of deliveries begin again, and a
homeserver would give the old event for the new answer. Encrypted rooms (`encryption.py`, an extra)
use the Olm machine of matrix-nio on a file of our own (`key_store.py`), because its own store makes
two commits of what must be one. That file is durable before our commit of `next_batch`. An event
without its key is a watermark of its own (`sealed.py`) until the key comes. Which device a home is
stands in a watermark, which a restore forgets.
"""
