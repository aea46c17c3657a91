// Package mp3test makes MP3 files for tests.
package mp3test

import (
	"bytes"
	"encoding/binary"
	"time"
)

// FrameLength is the length of a frame made by [Lying].
const FrameLength = 24 * time.Millisecond

// Lying returns an MP3 of silence with the given number of frames, each of 24 bytes. Its tag has the
// right number of bytes, but claims to have only one frame.
func Lying(frames int) []byte {
	file := make([]byte, 48)
	copy(file, "\xff\xf3\x24\xc0")
	copy(file[13:], "Info\x00\x00\x00\x03\x00\x00\x00\x01")
	binary.BigEndian.PutUint32(file[25:], uint32(len(file)+24*frames))
	frame := make([]byte, 24)
	copy(frame, "\xff\xf3\x14\xc0")
	return append(file, bytes.Repeat(frame, frames)...)
}
