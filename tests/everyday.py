"""Files of beacons as programs and people write them: one beacon at a place, in each."""

MAC, LEVEL, LOCATION = "C2A628384B08", "4", "K\u00fcche 1"
# As kontakt.io's panel exports it, the columns that matter among fifty.
_OTHERS = [f"column {number}" for number in range(44)]
_KONTAKT = ["Unique ID", "Name", "MAC Address", *_OTHERS, "Floor", "Venue", "Battery"]
_KONTAKT_ROW = ["k7Rq", LOCATION, "C2:A6:28:38:4B:08", *("" for _ in _OTHERS), LEVEL, "HQ", "97"]
FILES = [
    f"mac,level,location,x,y\n{MAC},4,{LOCATION},12.5,5\n",
    f"mac;level;location;x;y\n{MAC};4;{LOCATION};12,5;5\n",
    f"mac\tlevel\tlocation\tx\ty\r\n{MAC}\t4\t{LOCATION}\t12,5\t5\r\n",
    f"MAC,Level,Location,X,Y\n{MAC},4,{LOCATION},12.5,5\n",
    f"location,level,mac,y,x\n{LOCATION},4,{MAC},5,12.5\n",
    f"mac,level,location\n{MAC},4,{LOCATION}\n",
    f"id,mac,note,level,location,x,y\n1,{MAC},new,4,{LOCATION},12.5,5\n",
    f"\ufeffMAC Address;Floor;Room\r\n{MAC};4;{LOCATION}\r\n",
    f'"mac_address","floor","room"\n"{MAC}","4","{LOCATION}"\n',
    f"mac, level, location\n{MAC}, 4, {LOCATION}\n",
    f"mac,level,location\n{MAC},4,Ku\u0308che\u00a01\n",
    f"mac,level,location\n{MAC},\u30004,K\u00fc\u200bche\u20091\u200d\n",
    f"{','.join(_KONTAKT)}\n{','.join(_KONTAKT_ROW)}\n",
]
REFUSED = [
    *("mac,level\nC2A628384B08,4\n", "a,b,c,d,e\n", "mac;level;location,x\n"),
    *(f"mac,level,location,x\n{MAC},4,A,1\n", f"mac;level;location\n{MAC};4\n"),
    *(f"mac,level,location,x,y\n{MAC},4,A,1,5,5\n", f"mac|level|location\n{MAC}|4|A\n"),
    f"mac,level,location\n{MAC},4,a\u0007b\n",
]
