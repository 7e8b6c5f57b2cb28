"""What all parts know of browsers: the names of cookies, and by which names a port may be asked."""

# Over TLS the first of the two alone: no other site of the domain, and nobody without TLS, can set
# it.
SESSION_COOKIES = ("__Host-waymark_session", "waymark_session")
DEVICE_COOKIES = ("__Host-waymark_device", "waymark_device")
PROVIDER_COOKIES = ("__Host-waymark_oidc", "waymark_oidc")
# The gateway's word that it has looked at names and origins. No page can make its browser send a
# `Sec-` header.
LOOKED_AT = "Sec-Waymark-Gateway"
# Nobody can make an address lead elsewhere, as a name can be.
ADDRESS = r"\d+\.\d+\.\d+\.\d+|\[[0-9a-f:.]+\]"
# The header `Host` of who asks a service's own port; it may be missing.
OWN_HOST = rf"(localhost|{ADDRESS})?(:\d+)?"
