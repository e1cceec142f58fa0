"""``PIL.ExifTags``: the numbers of what a camera notes in a picture (Exif 2.3, section 4.6)."""

from __future__ import annotations

TAGS = {
    256: "ImageWidth",
    257: "ImageLength",
    270: "ImageDescription",
    271: "Make",
    272: "Model",
    274: "Orientation",
    282: "XResolution",
    283: "YResolution",
    296: "ResolutionUnit",
    305: "Software",
    306: "DateTime",
    34665: "ExifOffset",
    34853: "GPSInfo",
    36867: "DateTimeOriginal",
    36868: "DateTimeDigitized",
}
GPSTAGS = {
    1: "GPSLatitudeRef",
    2: "GPSLatitude",
    3: "GPSLongitudeRef",
    4: "GPSLongitude",
    5: "GPSAltitudeRef",
    6: "GPSAltitude",
    7: "GPSTimeStamp",
}
