#!/bin/sh
# Makes the fonts in static/files: Inter and JetBrains Mono, reduced to Latin letters, the signs that
# pages use, and weights from 400 to 700. Needs npm and Python with fonttools and brotli.
# Usage: static/fonts.sh DIRECTORY, an empty directory for downloads
set -eu

files=$(cd "$(dirname "$0")/files" && pwd)
cd "$1"
for name in inter-ui@4.1.1 @fontsource/jetbrains-mono@5.3.0; do
	archive=$(npm pack --silent "$name")
	mkdir "$archive.d"
	tar xzf "$archive" -C "$archive.d"
done

signs=U+20-7E,U+A0-FF,U+131,U+152-153,U+2C6,U+2DA,U+2DC,U+2013-2014,U+2018-201A,U+201C-201E,U+2022
signs=$signs,U+2026,U+2030,U+2039-203A,U+20AC,U+2122,U+2190-2193,U+2197,U+2212,U+2215,U+25B2,U+25BC
signs=$signs,U+25BE,U+1E9E

# subset FILE NAME FEATURES writes a font for the web. Names 0 and 13 are its copyright and license.
subset() {
	pyftsubset "$1" --unicodes="$signs" --layout-features="$3" --name-IDs=0,1,2,5,13,14 --no-hinting \
		--flavor=woff2 --output-file="$files/$2"
}

fonttools varLib.instancer inter-ui-*.d/package/variable/InterVariable.woff2 wght=400:700 opsz=14 \
	-q -o inter.ttf
subset inter.ttf inter.woff2 kern,liga,calt,tnum,ccmp,locl,mark,case
subset fontsource-jetbrains-mono-*.d/package/files/jetbrains-mono-latin-400-normal.woff2 mono.woff2 \
	kern,ccmp,locl,zero

{
	echo "inter.woff2 is a subset of Inter, mono.woff2 of JetBrains Mono."
	echo
	sed -n 1p inter-ui-*.d/package/LICENSE.txt
	cat fontsource-jetbrains-mono-*.d/package/LICENSE
} >"$files/fonts.txt"
