package recordings

import (
	"slices"
	"strings"
	"testing"
)

// TestNameWords shows which words find a recording.
func TestNameWords(t *testing.T) {
	for _, tt := range []struct {
		m    Metadata
		want string
	}{
		{Metadata{Name: "Sales_Call-2026.11.28 (Ada).WAV"}, "sales call 2026 11 28 ada wav"},
		{Metadata{Name: "MonthlyReview.mp3"}, "monthlyreview review mp3"},
		{Metadata{Name: "Émile–Ström.ogg"}, "émile ström ogg"},
		{Metadata{Name: "e\u0301te\u0301"}, "été"},
		{Metadata{Name: "通話録音.wav"}, "通話録音 wav"},
		{Metadata{Name: "a a A a.a"}, "a"},
		{Metadata{From: "+1 415 555 0134", To: "/private/ada"}, "private ada"},
		{Metadata{From: `"Ada Lovelace" <sip:ada@pbx>`, ConferenceSid: "weekly"}, "weekly ada lovelace sip pbx"},
		{Metadata{Name: "-- ✓.--"}, ""},
	} {
		if got := strings.Join(tt.m.Words(), " "); got != tt.want {
			t.Errorf("the words of %+v are %q, want %q", tt.m, got, tt.want)
		}
	}

	long := strings.Repeat("é", 50)
	stored := (Metadata{Name: long}).Words()
	if len(stored) != 1 {
		t.Fatalf("a long word becomes %q, want one word", stored)
	}
	if n := len(stored[0]); n > maxWordBytes {
		t.Errorf("a long word is cut to %d bytes, want at most %d", n, maxWordBytes)
	}
	if searched := Words(long); !slices.Equal(searched, stored) {
		t.Errorf("a search for a long word looks for %q, want %q", searched, stored)
	}

	letters := strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyz0123456789", ""), " ")
	if n := len((Metadata{Name: letters}).Words()); n != maxWords {
		t.Errorf("%d of 36 words are kept, want %d", n, maxWords)
	}
}

// TestFileName shows which name is stored for a path.
func TestFileName(t *testing.T) {
	for path, want := range map[string]string{
		"":                       "",
		"call.wav":               "call.wav",
		"/var/spool/a b.wav":     "a b.wav",
		`C:\calls\one.wav`:       "one.wav",
		"dir/":                   "",
		"a\x00\n\xffb.wav":       "ab.wav",
		strings.Repeat("é", 200): strings.Repeat("é", 127),
	} {
		if got := fileName(path); got != want {
			t.Errorf("fileName(%q) = %q, want %q", path, got, want)
		}
	}
}
