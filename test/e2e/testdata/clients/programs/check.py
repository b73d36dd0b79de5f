"""What the Python programs share: one line of output for each thing tried."""
import sys
from urllib.parse import urlparse

dsn = sys.argv[1]
url = urlparse(dsn)


def code(error):
    """The SQLSTATE of an exception of any of the drivers."""
    error = getattr(error, "orig", None) or getattr(error, "__cause__", None) or error
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or (error.args[0] if error.args else "")


def works(name, f):
    try:
        print("ok", name, str(f()).replace("\n", " ")[:150])
    except Exception as e:
        print("failed", name, type(e).__name__, str(e).replace("\n", " ")[:500])


def refused(name, state, f):
    try:
        f()
    except Exception as e:
        if code(e) == state:
            print("ok", name, state)
        else:
            print("failed", name, code(e), "in place of", state, str(e).replace("\n", " ")[:500])
    else:
        print("failed", name, "was not refused")


def done():
    print("done")
