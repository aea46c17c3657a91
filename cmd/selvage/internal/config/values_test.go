package config

import (
	"encoding"
	"os"
	"path/filepath"
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
		{text: "1", want: 1, ok: true},
		{text: "500MiB", want: 500 << 20, ok: true},
		{text: "2 GiB", want: 2 << 30, ok: true},
		{text: "4096TiB", want: 4096 << 40, ok: true},
		{text: ""},
		{text: "0"},
		{text: "-1KiB"},
		{text: "2GB"},
		{text: "9999999999TiB"},
	}

	for _, tt := range tests {
		var got size
		err := got.UnmarshalText([]byte(tt.text))
		if ok := err == nil; ok != tt.ok {
			t.Errorf("parsing the size %q = %v, want success %t", tt.text, err, tt.ok)
		}
		if got != tt.want {
			t.Errorf("size %q = %d, want %d", tt.text, got, tt.want)
		}
	}
	if got := size(500 << 20).String(); got != "500MiB" {
		t.Errorf("String() = %q, want 500MiB", got)
	}
}

// A duration is a pointer to one of the types for durations.
type duration[T ~int64] interface {
	*T
	encoding.TextUnmarshaler
}

// testDurations checks that the keys of valid are parsed as their values, and that the texts in invalid
// are rejected.
func testDurations[T ~int64, D duration[T]](t *testing.T, valid map[string]time.Duration, invalid ...string) {
	t.Helper()
	const unset = -1
	for text, want := range valid {
		got := T(unset)
		if err := D(&got).UnmarshalText([]byte(text)); err != nil {
			t.Errorf("parsing %q: %v", text, err)
		}
		if time.Duration(got) != want {
			t.Errorf("%q was parsed as %v, want %v", text, time.Duration(got), want)
		}
	}

	for _, text := range invalid {
		got := T(unset)
		if err := D(&got).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("parsing %q succeeded, want an error", text)
		}
		if got != unset {
			t.Errorf("parsing the invalid text %q changed the value to %v", text, time.Duration(got))
		}
	}
}

func TestPatience(t *testing.T) {
	testDurations[patience](t, map[string]time.Duration{
		"0s":  0,
		"90s": 90 * time.Second,
		"24h": 24 * time.Hour,
	}, "", "-1s", "25h", "10")
}

func TestRinging(t *testing.T) {
	testDurations[ringing](t, map[string]time.Duration{
		"1s":  time.Second,
		"90s": 90 * time.Second,
		"10m": 10 * time.Minute,
	}, "0s", "11m", "-1s", "", "10")
}

func TestToneEvery(t *testing.T) {
	testDurations[toneEvery](t, map[string]time.Duration{
		"0s":  0,
		"0":   0,
		"5s":  5 * time.Second,
		"24h": 24 * time.Hour,
	}, "4s", "25h", "-5s", "", "15")
}

func TestRetention(t *testing.T) {
	testDurations[retention](t, map[string]time.Duration{
		"0":    0,
		"400d": 400 * span.Day,
		"720h": 30 * span.Day,
	}, "29d", "1h", "-1d", "", "ever", "99999999d")
}

func TestBaseURL(t *testing.T) {
	tests := []struct {
		text string
		want BaseURL
		ok   bool
	}{
		{text: "https://id.example.org", want: "https://id.example.org", ok: true},
		{text: "https://id.example.org:8443/", want: "https://id.example.org:8443", ok: true},
		{text: "", want: "", ok: true},
		{text: "id.example.org"},
		{text: "ftp://id.example.org"},
		{text: "https://id.example.org/path"},
		{text: "https://id.example.org?x"},
		{text: "https://user@id.example.org"},
		{text: "https://"},
	}

	for _, tt := range tests {
		var got BaseURL
		err := got.UnmarshalText([]byte(tt.text))
		if ok := err == nil; ok != tt.ok {
			t.Errorf("parsing the URL %q = %v, want success %t", tt.text, err, tt.ok)
		}
		if tt.ok && got != tt.want {
			t.Errorf("URL %q = %q, want %q", tt.text, got, tt.want)
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
	if err := want.apply(defaults(), nil); err != nil {
		t.Fatal(err)
	}
	if err := got.apply(written, nil); err != nil {
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
		for _, block := range blocks {
			text, _, _ := strings.Cut(block, "```")
			written, err := parseFile(page, []byte(text))
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, text)
				continue
			}
			if len(written) == 0 {
				t.Errorf("%s: the file has no keys:\n%s", page, text)
			}
			var c Config
			if err := c.apply(written, nil); err != nil {
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
		if s.Default == "" {
			continue
		}
		if err := s.parse(new(Config), s.Default); err != nil {
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
			written, err := parseFile("selvage.yaml", []byte(text))
			if err != nil {
				return
			}
			for path := range written {
				if !slices.Contains(paths(), path) {
					t.Errorf("parseFile(%q) sets %q, which is not a key", text, path)
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

// TestEmptyFile shows that an empty file is an error. Otherwise, a server whose secrets are missing
// would create its own master key. The files of the first operator can be emptied after the
// first start.
func TestEmptyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		variable string
		refused  bool
	}{
		{"SELVAGE_MASTER_KEY_FILE", true},
		{"SELVAGE_DATABASE_FILE", true},
		{"SELVAGE_BOOTSTRAP_ADMIN_EMAIL_FILE", false},
		{"SELVAGE_BOOTSTRAP_ADMIN_PASSWORD_FILE", false},
		{"SELVAGE_BOOTSTRAP_ADMIN_API_TOKEN_FILE", false},
	} {
		getenv := func(name string) string {
			if name == c.variable {
				return file
			}
			return ""
		}
		want := ""
		if c.refused {
			want = c.variable + ": " + file + " is empty"
		}

		got := ""
		if _, err := envLayer(getenv, []string{c.variable + "=" + file}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("with an empty %s, the error is %q, want %q", c.variable, got, want)
		}
	}
}

// TestEmptiedBootstrap shows that each setting of the first operator can be emptied without the others.
// A password that was never set is an error.
func TestEmptiedBootstrap(t *testing.T) {
	const email, secret, token = "bootstrap_admin_email", "bootstrap_admin_password", "bootstrap_admin_api_token"
	all := Config{
		BootstrapAdminEmail:    "root@example.com",
		BootstrapAdminPassword: "a loom of one's own",
		BootstrapAdminAPIToken: "PT" + strings.Repeat("0", 64),
	}
	from := Origins{email: "file", secret: "file", token: "file"}
	emptied := map[string]Config{"none": all, email: all, secret: all, token: all}
	for name, c := range emptied {
		switch name {
		case email:
			c.BootstrapAdminEmail = ""
		case secret:
			c.BootstrapAdminPassword = ""
		case token:
			c.BootstrapAdminAPIToken = ""
		}
		if err := c.checkBootstrap(from); err != nil {
			t.Errorf("with an empty file for %s, the error is %v, want nil", name, err)
		}
	}

	all.BootstrapAdminPassword = ""
	if err := all.checkBootstrap(Origins{email: "file"}); err == nil {
		t.Error("without a password, the error is nil")
	}
}
