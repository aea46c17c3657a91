package config

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/span"
)

func TestSize(t *testing.T) {
	tests := []struct {
		text string
		want size
		ok   bool
	}{
		{"1", 1, true},
		{"500MiB", 500 << 20, true},
		{"2 GiB", 2 << 30, true},
		{"4096TiB", 4096 << 40, true},
		{"", 0, false},
		{"0", 0, false},
		{"-1KiB", 0, false},
		{"2GB", 0, false},
		{"9999999999TiB", 0, false},
	}

	for _, tt := range tests {
		var got size
		err := got.UnmarshalText([]byte(tt.text))
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("size %q = %d, %v, want %d, %v", tt.text, got, err, tt.want, tt.ok)
		}
	}
	if got := size(500 << 20).String(); got != "500MiB" {
		t.Errorf("String() = %q, want 500MiB", got)
	}
}

func TestPatience(t *testing.T) {
	for text, want := range map[string]patience{
		"0s":  0,
		"90s": patience(90 * time.Second),
		"24h": patience(24 * time.Hour),
		"":    -1,
		"-1s": -1,
		"25h": -1,
		"10":  -1,
	} {
		got := patience(-1)
		if err := got.UnmarshalText([]byte(text)); got != want || (err == nil) != (want >= 0) {
			t.Errorf("patience %q = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestRinging(t *testing.T) {
	for text, want := range map[string]ringing{
		"1s":  ringing(time.Second),
		"90s": ringing(90 * time.Second),
		"10m": ringing(10 * time.Minute),
		"0s":  -1,
		"11m": -1,
		"-1s": -1,
		"":    -1,
		"10":  -1,
	} {
		got := ringing(-1)
		if err := got.UnmarshalText([]byte(text)); got != want || (err == nil) != (want >= 0) {
			t.Errorf("ringing %q = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestToneEvery(t *testing.T) {
	for text, want := range map[string]toneEvery{
		"0s":  0,
		"0":   0,
		"5s":  toneEvery(5 * time.Second),
		"24h": toneEvery(24 * time.Hour),
		"4s":  -1,
		"25h": -1,
		"-5s": -1,
		"":    -1,
		"15":  -1,
	} {
		got := toneEvery(-1)
		if err := got.UnmarshalText([]byte(text)); got != want || (err == nil) != (want >= 0) {
			t.Errorf("tone %q = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestBaseURL(t *testing.T) {
	tests := []struct {
		text, want string
		ok         bool
	}{
		{"https://id.example.org", "https://id.example.org", true},
		{"https://id.example.org:8443/", "https://id.example.org:8443", true},
		{"", "", true},
		{"id.example.org", "", false},
		{"ftp://id.example.org", "", false},
		{"https://id.example.org/path", "", false},
		{"https://id.example.org?x", "", false},
		{"https://user@id.example.org", "", false},
		{"https://", "", false},
	}
	for _, tt := range tests {
		var got BaseURL
		if err := got.UnmarshalText([]byte(tt.text)); (err == nil) != tt.ok || tt.ok && string(got) != tt.want {
			t.Errorf("baseURL %q = %q, %v, want %q, %v", tt.text, got, err, tt.want, tt.ok)
		}
	}
}

// TestSample checks that the sample contains every key once, with its default.
func TestSample(t *testing.T) {
	var sample strings.Builder
	if err := Sample(&sample); err != nil {
		t.Fatal(err)
	}

	written, err := parseFile("selvage.yaml", []byte(sample.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(written) != len(Settings()) {
		t.Errorf("the sample has %d keys, want %d", len(written), len(Settings()))
	}

	var want, got Config
	if err := errors.Join(want.apply(defaults(), nil), got.apply(written, nil)); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sample differs from the defaults:\n%s", diff)
	}
}

// TestManual checks that the configuration files in the manual are valid.
func TestManual(t *testing.T) {
	for _, page := range []string{"delivery.md", "high-availability.md", "https.md", "mail.md"} {
		text, err := os.ReadFile("../../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}

		blocks := strings.Split(string(text), "```yaml\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s has no configuration file", page)
		}
		for _, b := range blocks {
			text, _, _ := strings.Cut(b, "```")
			written, err := parseFile(page, []byte(text))
			var c Config
			if err := errors.Join(err, c.apply(written, nil)); err != nil || len(written) == 0 {
				t.Errorf("%s: %v in\n%s", page, err, text)
			}
		}
	}
}

// TestSettings checks that every key has help and a valid default.
func TestSettings(t *testing.T) {
	for _, s := range Settings() {
		if !strings.HasSuffix(s.Meaning, ".") {
			t.Errorf("the help of %s is %q, want a sentence", s.Path, s.Meaning)
		}
		if err := s.parse(new(Config), s.Default); s.Default != "" && err != nil {
			t.Errorf("default of %s: %v", s.Path, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("listen: :80\nlog: {level: info}\n")
	f.Add("a: [b, {c: d}]\n? x\n: &y *y")
	f.Add("a: &a [" + strings.Repeat("x,", 100) + "]\n" +
		strings.Repeat("b: [*a,*a,*a,*a]\n", 100)) // nested aliases that expand to a huge document
	f.Add(strings.Repeat("[", 5_000))
	f.Add(strings.Repeat("a: {", 1_000))
	f.Add(strings.Repeat("- ", 5_000))
	f.Add(strings.Repeat("lisen: 1\n", 1_000)) // each unknown key gets a suggestion

	// An unknown key is compared with all keys, to suggest one.
	bound := fuzzcost.Bound{
		CPU:        20 * time.Millisecond,
		CPUPerByte: 200 * time.Microsecond,
		Heap:       4 << 20,
		PerByte:    32 << 10,
	}
	f.Fuzz(func(t *testing.T, text string) {
		bound.Check(t, len(text), func() {
			if l, err := parseFile("selvage.yaml", []byte(text)); err == nil {
				for path := range l {
					if !slices.Contains(paths(), path) {
						t.Errorf("parseFile(%q) sets %q, which is not a key", text, path)
					}
				}
			}
		})
	})
}

func TestCheckVariables(t *testing.T) {
	tests := []struct{ entry, want string }{
		{"SELVAGE_LISTEN=:80", ""},
		{"SELVAGE_LISTEN_FILE=x", ""},
		{"SELVAGE_CONFIG=x", ""},
		{"SELVAGE_TEST_ALL=1", ""},
		{"SELVAGE_BINARY=bin/selvage", ""},
		{"SELVAGE_NOTHING=", ""},
		{"SELVAGER=1", ""},
		{"SELVAGE_SERVICE_HOST=10.0.0.1", ""}, // the form that Kubernetes sets
		{"SELVAGE_SERVICE_PORT_HTTP=80", ""},
		{"SELVAGE_OPS_PORT=tcp://10.0.0.1:80", ""},
		{"SELVAGE_PORT_80_TCP_ADDR=10.0.0.1", ""},
		{"SELVAGE_PORT=80", "SELVAGE_PORT: unknown key"},
		{"SELVAGE_LISTN=:80", `SELVAGE_LISTN: unknown key; did you mean "SELVAGE_LISTEN"?`},
		{"SELVAGE_LOG_LEVEL=info", `SELVAGE_LOG_LEVEL: unknown key; did you mean "SELVAGE_LOG__LEVEL"?`},
		{"SELVAGE_MAX_UPLOAD=1", `SELVAGE_MAX_UPLOAD: unknown key; did you mean "SELVAGE_RECORDINGS__MAX_UPLOAD"?`},
	}

	for _, tt := range tests {
		got := ""
		if err := checkVariables([]string{"HOME=/", tt.entry}); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("checkVariables(%q) = %q, want %q", tt.entry, got, tt.want)
		}
	}
}

func TestRetention(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0":         0,
		"400d":      400 * span.Day,
		"720h":      30 * span.Day,
		"29d":       -1,
		"1h":        -1,
		"-1d":       -1,
		"":          -1,
		"ever":      -1,
		"99999999d": -1,
	} { // -1 means an error
		var r retention
		err := r.UnmarshalText([]byte(text))
		if (err != nil) != (want < 0) || err == nil && time.Duration(r) != want {
			t.Errorf("retention %q = %v, %v, want %v", text, r, err, want)
		}
	}
}
