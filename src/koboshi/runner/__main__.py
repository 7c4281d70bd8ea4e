"""Where a runner begins: `python -I -S <this file> <folder of the process>`.

An isolated interpreter looks for modules nowhere near this file, and compiles this file each time;
the program beside it is compiled once.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0])
__import__("program").main(sys.argv[1])
