// Command mp3 compares the MP3s of recordings/mp3 with those of lame at the same
// bit rate: how near they are to what was encoded, and what they cost.
//
// It needs lame and ffmpeg; speech is that of Debian's asterisk-core-sounds-en-wav
// and of the flite in ffmpeg, the rest is synthesised. PESQ is shown where python3 (or what
// PYTHON names) has the package of that name.
//
//	go run ./bench/mp3            both tables
//	go run ./bench/mp3 -quality   the first of them
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	quality := flag.Bool("quality", false, "compare the quality alone")
	speed := flag.Bool("speed", false, "compare the speed alone")
	only := flag.String("only", "", "materials whose name has this in it")
	kind := flag.String("lame", "", "further options of lame, such as \"-q 5\"")
	repeat := flag.Int("repeat", 7, "pairs of runs")
	self := flag.String("encode", "", "encode this WAV and write the MP3 to the standard output; for measuring")
	flag.Parse()
	if err := run(*quality, *speed, *only, *kind, *repeat, *self); err != nil {
		fmt.Fprintln(os.Stderr, "mp3:", err)
		os.Exit(1)
	}
}

func run(quality, speed bool, only, options string, repeat int, self string) error {
	if self != "" {
		return encodeFile(self, os.Stdout)
	}
	dir, err := os.MkdirTemp("", "mp3")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if !speed {
		if err := compareQuality(dir, only, options); err != nil {
			return err
		}
	}
	if !quality {
		return compareSpeed(dir, repeat)
	}
	return nil
}
