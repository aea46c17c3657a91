package naming_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/naming"
)

// FuzzSidecar checks that ReadSidecar neither panics nor takes too much time or memory for any JSON,
// and that a description never names both a call and a conference.
func FuzzSidecar(f *testing.F) {
	for _, text := range []string{
		`{"call_sid":"c","From":"1","direction":"INBOUND","start_time":"2026-11-20T10:00:00Z","track":"both"}`,
		`{"room_name":"r","started_at":1763632800000000000}`,
		`{"startTime":1e400}`,
		`{"startTime":"NaN"}`,
		`{"startTime":-1,"callid":5e-324}`,
		`{"from":` + strings.Repeat("[", 9_000),
		"[]",
		"null",
		`{"` + strings.Repeat("_", 30_000) + `callsid":"x"}`,
		`{` + strings.Repeat(`"a":"b",`, 5_000) + `"a":1}`,
	} {
		f.Add([]byte(text))
	}

	bound := fuzzcost.Bound{CPU: time.Millisecond, CPUPerByte: time.Microsecond, Heap: 64 << 10, PerByte: 256}
	f.Fuzz(func(t *testing.T, text []byte) {
		bound.Check(t, len(text), func() {
			var d recordings.Description
			if err := naming.ReadSidecar(text, &d); err != nil {
				return
			}
			if d.CallSid != "" && d.ConferenceSid != "" {
				t.Errorf("%q names the call %q and the conference %q, want one of them",
					text, d.CallSid, d.ConferenceSid)
			}
		})
	})
}

// FuzzNames checks that presets and any other pattern neither panic nor take too much time or memory
// for any path, and that the caller they find is part of the path.
func FuzzNames(f *testing.F) {
	for _, path := range []string{
		"archive/2026/Nov/20/6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10.wav",
		"in-100-200-20261120-101500-1.2.wav",
		"a%40b-0123456789abcdef-mix.wav",
		"call_recording_%zz.mp3",
		"20269999-999999-x.wav",
		"room-2026-11-20T101500.mp4",
		strings.Repeat("-", 4_000) + ".wav",
		strings.Repeat("a/", 2_000) + "x.wav",
		"9999999999.99999999999.wav",
	} {
		f.Add(path, "{epoch}-{call}.{ext}")
	}
	f.Add("x", strings.Repeat("{any}", 2))
	f.Add("x", "{"+strings.Repeat("call", 1_000)+"}")
	f.Add(strings.Repeat("x", 2_000), "{from}{to}{any}{call}{track}.{ext}")

	var presets naming.Patterns
	for _, name := range naming.Presets() {
		patterns, err := naming.Preset(name)
		if err != nil {
			f.Fatal(err)
		}
		presets = append(presets, patterns...)
	}

	bound := fuzzcost.Bound{
		CPU:        5 * time.Millisecond,
		CPUPerByte: 20 * time.Microsecond,
		Heap:       1 << 20,
		PerByte:    4 << 10,
	}
	f.Fuzz(func(t *testing.T, path, pattern string) {
		if len(path) > 4<<10 || len(pattern) > 4<<10 {
			return // paths in a file system are shorter
		}
		bound.Check(t, len(path)+len(pattern), func() {
			for _, p := range presets {
				var d recordings.Description
				naming.Patterns{p}.Describe(path, &d)
			}
			p, err := naming.Parse(pattern)
			if err != nil {
				return
			}
			var d recordings.Description
			naming.Patterns{p}.Describe(path, &d)
			if utf8.ValidString(path) && !strings.Contains(path, d.From) {
				t.Errorf("%q finds the caller %q, which the path %q does not contain", pattern, d.From, path)
			}
		})
	})
}
