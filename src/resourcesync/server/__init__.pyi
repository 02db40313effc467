from resourcesync.app.asgi import create_app as create_app
from resourcesync.app.asgi import create_operations_app as create_operations_app
