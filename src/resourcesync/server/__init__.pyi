from resourcesync.app.serving.asgi import create_app as create_app
from resourcesync.app.serving.asgi import create_operations_app as create_operations_app
