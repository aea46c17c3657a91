package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// speechFile is a WAV file with recorded speech: 8 kHz, 16 bits and one channel, after a header of
// 44 bytes.
const speechFile = "recordings/testdata/speech_s16_8k.wav"

// speechOf repeats the speech in speechFile until it lasts the given number of seconds. It returns
// the result as a WAV file.
func speechOf(p *harness.Program, seconds int) []byte {
	file, err := os.ReadFile(speechFile)
	if err != nil {
		p.Fatalf("reading speech: %v", err)
	}
	size := seconds * 8000 * 2
	b := make([]byte, 0, 44+size+len(file))
	b = append(b, file[:44]...)
	for len(b) < 44+size {
		b = append(b, file[44:]...)
	}

	b = b[:44+size]
	binary.LittleEndian.PutUint32(b[4:], uint32(36+size))
	binary.LittleEndian.PutUint32(b[40:], uint32(size))
	return b
}

// soundOperations returns the operations that need much computation. They get the MP3 of a
// ten-minute recording, 64 KiB from the middle of a ten-hour MP3, and an outline, or upload a
// recording.
func (w *world) soundOperations(p *harness.Program) []operation {
	at := strings.TrimPrefix(w.HTTP, "http://")
	base := strings.TrimSuffix(w.media, ".wav")
	whole := w.Get(p, base+".mp3").Want(p, 200).Body

	long := w.LaML("/Recordings/" + w.Upload(p, speechOf(p, 10*3600)) + ".mp3")
	const from, piece = 72_000_000, 64 << 10
	middle := w.Get(p, long, harness.Header("Range", fmt.Sprintf("bytes=%d-%d", from, from+piece-1))).Want(p,
		206).Body
	part := w.get(long, fmt.Sprintf("Range: bytes=%d-%d", from, from+piece-1))

	peaks := w.get(base + ".peaks.json?pixels=800")

	return []operation{
		{
			name:        mp3Whole,
			address:     at,
			connections: 1,
			task:        func(int) task { return bytesOf(w.get(base+".mp3"), 200, whole) },
		},
		{
			name:        mp3Range,
			address:     at,
			connections: 1,
			goal:        5,
			task:        func(int) task { return bytesOf(part, 206, middle) },
		},
		{
			name:        outline,
			address:     at,
			connections: 4,
			task:        func(int) task { return once(peaks, 200, `"length":800`) },
		},
		{name: upload, address: at, connections: 1, goal: uploadGoal, task: w.upload},
	}
}

// uploadGoal is the CPU time in milliseconds for ten minutes of speech. These are 9.6 MB, at 300 MB
// per second of CPU time.
const uploadGoal = 32

// upload returns a task that uploads w.speech. The last sample differs each time, because the
// server stores equal files only once.
func (w *world) upload(int) task {
	request := w.post(w.LaML("/Recordings"), "audio/wav", string(w.speech), basic(w.ID, w.Key))
	return func(c *wire) error {
		binary.LittleEndian.PutUint16(request[len(request)-2:], uint16(w.uploads.Add(1)))
		return once(request, 201, `"completed"`)(c)
	}
}

// These are the names of the operations with sounds.
const (
	mp3Whole = "MP3 of ten minutes"
	mp3Range = "MP3, 64 KiB in the middle of ten hours"
	outline  = "outline of ten minutes"
	upload   = "upload of ten minutes"
)

// These are the measured commands of lame, with the default quality and with a lower one that is
// faster. They are also the names of the measurements.
const (
	lameDefault = "lame -b 32"
	lameFast    = "lame -b 32 -q 7"
)

var soundNames = []string{mp3Whole, mp3Range, outline, upload}

// addLame measures how fast lame encodes the same recording, if lame is installed and selected. It
// counts only user time, so that reading and writing files does not count.
func (w *world) addLame(p *harness.Program, s settings, r *report, prefix []string) {
	lame, err := exec.LookPath("lame")
	if err != nil || !s.only.MatchString("lame") {
		p.Logf("lame is not measured, because it is not installed or not selected")
		return
	}

	file := filepath.Join(p.TempDir(), "speech.wav")
	if err := os.WriteFile(file, w.speech, 0o600); err != nil {
		p.Fatalf("%v", err)
	}

	for _, name := range []string{lameDefault, lameFast} {
		flags := strings.Fields(name)[1:]
		var took []float64
		for range max(3, s.repeat) {
			args := slices.Concat(prefix, []string{lame, "--quiet"}, flags,
				[]string{file, filepath.Join(filepath.Dir(file), "lame.mp3")})
			cmd := exec.Command(args[0], args[1:]...)
			if out, err := cmd.CombinedOutput(); err != nil {
				p.Fatalf("lame: %v\n%s", err, out)
			}
			took = append(took, milliseconds(cmd.ProcessState.UserTime()))
		}

		slices.Sort(took)
		cpu := took[len(took)/2]
		here := r.bare.measureMachine(p, s.length, work{})
		r.Figures = append(r.Figures, row{
			Name:        name,
			Connections: 1,
			CPU:         cpu,
			Machine:     here,
			Floors:      cpu / here.Floor,
			There:       here.there(cpu, work{}),
			Rate:        1000 / cpu,
		})
	}
}
