// Command mp3 compares the MP3s from package recordings/mp3 with MP3s from lame at the same bit
// rate. It measures how close they are to the original, and how much CPU time they cost.
//
// It needs lame and ffmpeg. Speech comes from Debian's asterisk-core-sounds-en-wav and from flite
// in ffmpeg. The other material is synthesized. PESQ is shown if python3 (or the program in PYTHON)
// has the package pesq.
//
//	go run ./bench/mp3            both tables
//	go run ./bench/mp3 -quality   only the first table
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	quality := flag.Bool("quality", false, "compare only the quality")
	speed := flag.Bool("speed", false, "compare only the speed")
	only := flag.String("only", "", "material and rate whose quality is compared, such as \"speech8000\"")
	kind := flag.String("lame", "", "more options for lame when comparing the quality, such as \"-q 5\"")
	repeat := flag.Int("repeat", 7, "pairs of runs when comparing the speed")
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
