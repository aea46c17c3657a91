package main

import (
	"slices"
	"strings"
	"testing"
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
		var got baseURL
		if err := got.UnmarshalText([]byte(tt.text)); (err == nil) != tt.ok || tt.ok && string(got) != tt.want {
			t.Errorf("baseURL %q = %q, %v, want %q, %v", tt.text, got, err, tt.want, tt.ok)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"database", "data", "listen", "listen_tls", "log"}
	tests := []struct{ name, want string }{
		{"databse", "database"},
		{"lsiten", "listen"},
		{"Listen", "listen"},
		{"listen_tsl", "listen_tls"},
		{"dta", "data"},
		{"zebra", ""},
		{"", ""},
	}
	for _, tt := range tests {
		want := ""
		if tt.want != "" {
			want = `; did you mean "` + tt.want + `"?`
		}
		if got := didYouMean(tt.name, names); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", tt.name, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	id := strings.Repeat("i", 36)
	rows := [][]string{
		{"ID", "Name", "Empty", "Grants", "Created"},
		{id, "Demo", "", strings.Repeat("g", 30), "2026-11-21 04:12"},
	}
	tests := []struct {
		limit   int
		columns []string
		widths  []int
	}{
		{0, []string{"ID", "Name", "Empty", "Grants", "Created"}, []int{36, 4, 5, 30, 16}},
		{200, []string{"ID", "Name", "Grants", "Created"}, []int{36, 4, 30, 16}},
		{80, []string{"ID", "Name", "Grants", "Created"}, []int{36, 4, 18, 16}},
		{70, []string{"ID", "Name", "Grants"}, []int{36, 4, 26}},
		{20, []string{"ID", "Name"}, []int{36, 4}},
	}
	for _, tt := range tests {
		got, widths := fit(rows, tt.limit)
		if !slices.Equal(got[0], tt.columns) || !slices.Equal(widths, tt.widths) {
			t.Errorf("fit(%d) = %v %v, want %v %v", tt.limit, got[0], widths, tt.columns, tt.widths)
		}
	}
}

// TestSettings shows that every key says what it is, and that its default is one.
func TestSettings(t *testing.T) {
	for _, s := range settings() {
		if s.help == "" {
			t.Errorf("%s has no help", s.path)
		}
		if _, err := s.parse(s.def); s.def != "" && err != nil {
			t.Errorf("default of %s: %v", s.path, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("listen: :80\nlog: {level: info}\n")
	f.Add("a: [b, {c: d}]\n? x\n: &y *y")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := parseFile("selvage.yaml", []byte(text)); err == nil {
			for path := range l {
				if !slices.Contains(paths(), path) {
					t.Errorf("parseFile(%q) sets %q, which is no key", text, path)
				}
			}
		}
	})
}
