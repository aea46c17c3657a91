package fabric

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
)

// TestNames checks which names are never allowed, which are allowed only as names of people, and
// which are always allowed.
func TestNames(t *testing.T) {
	const nowhere, people, anywhere = "nowhere", "people", "anywhere" // where a name is allowed
	tests := []struct{ name, want string }{
		{"", anywhere},
		{"Front desk", anywhere},
		{"24/7 Support", anywhere},
		{"R&D (Zürich) #3 – 100 %", anywhere},
		{"v1.2...", anywhere},
		{"../x", people},
		{`..\x`, people},
		{"x/../y", people},
		{"x/ .. /y", people},
		{"..", people},
		{".", people},
		{"/private/x", people},
		{"／private／x", people},
		{"%2e%2e", people},
		{"a%2Fb", people},
		// Invisible characters.
		{"ad\u200da", nowhere},
		{"ad\u200ca", nowhere},
		{"ad\u200ba", nowhere},
		{"\u200dada", nowhere},
		{"ada\u202ecod", nowhere},
		{"ada\u2067cod", nowhere},
		{"ada\ufeff", nowhere},
		{"ada\u00ad", nowhere},
		{"ada\u034f", nowhere},
		{"ada\u3164", nowhere},
		{"ada\u2800", nowhere},
		{"ada\ufe0f", nowhere},
		{"ada\U000e0041", nowhere},
		{"ada\ue000", nowhere},
		{"ada\u2028", nowhere},
		{"ada\nb", nowhere},
		{"e" + strings.Repeat("\u0301\u0302\u0303", 2), nowhere},
		// Sequences that other scripts and emoji need.
		{"می\u200cخواهم", anywhere},
		{"क्\u200dष", anywhere},
		{"👩\u200d💻 Hotline ☎\ufe0f", anywhere},
		{"👩🏽\u200d💻", anywhere},
		{"1\ufe0f⃣", anywhere},
		{"قسم الدعم", anywhere},
		{"תמיכה", anywhere},
		{"Việt", anywhere},
		// Mixed scripts.
		{"Suppоrt", nowhere}, // with a Cyrillic о
		{"pаypаl", nowhere},
		{"Αdmin", nowhere},   // with a Greek Α
		{"agent৪", nowhere},  // with a Bengali digit
		{"аlice@x", nowhere}, // with a Cyrillic а
		{"Поддержка", anywhere},
		{"Поддержка Support", anywhere},
		{"東京タワーのTシャツ", anywhere},
		{"서울大學", anywhere},
		{"東京서울タ", nowhere},
	}

	for _, tt := range tests {
		got := anywhere
		if err := checkName("name", tt.name); err != nil {
			got = people
		}
		if err := checkShown("name", tt.name); err != nil {
			got = nowhere
			wantInvalidName(t, tt.name, err)
		}
		if got != tt.want {
			t.Errorf("%+q is allowed: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// wantInvalidName fails the test unless an error says that the parameter name is invalid.
func wantInvalidName(t *testing.T, name string, err error) {
	t.Helper()
	p := problem.First(err)
	if p.Kind != problem.Invalid {
		t.Errorf("checkShown(%+q) returned a problem of the kind %v, want Invalid", name, p.Kind)
	}
	if p.Param != "name" {
		t.Errorf("checkShown(%+q) returned a problem with the parameter %q, want name", name, p.Param)
	}
	if p.Code != "invalid_parameter" {
		t.Errorf("checkShown(%+q) returned a problem with the code %q, want invalid_parameter", name, p.Code)
	}
}

// TestNameDigest shows that names that look the same have the same digest, and that other names have
// different digests.
func TestNameDigest(t *testing.T) {
	same := [][]string{
		{"Café", "Cafe\u0301", "CAFÉ", " café "},
		{"Straße", "STRASSE", "strasse"},
		{"Front  desk", "front\u00a0desk", "Ｆｒｏｎｔ desk"},
		{"ﬁx", "FIX"},
		{"می\u200cخواهم", "میخواهم"},
		{"Ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ"},
		{"Cafe"},
		{"Поддержка"},
		{"东京"},
		{"24/7"},
		{"24-7"},
	}

	seen := make(map[string]string) // the first name with each digest
	for _, names := range same {
		digest := nameDigest(names[0])
		if len(digest) != 64 {
			t.Errorf("nameDigest(%q) = %q, want 64 characters", names[0], digest)
		}
		if other, ok := seen[digest]; ok {
			t.Errorf("nameDigest(%q) = %q, the same as that of %q", names[0], digest, other)
		}
		seen[digest] = names[0]
		for _, name := range names[1:] {
			if got := nameDigest(name); got != digest {
				t.Errorf("nameDigest(%q) = %q, want that of %q, %q", name, got, names[0], digest)
			}
		}
	}

	if d := nameDigest(" \u200d "); d != "" {
		t.Errorf("nameDigest of an empty name = %q, want no digest", d)
	}
}

func TestSlug(t *testing.T) {
	tests := []struct{ text, want string }{
		{"Front desk", "front-desk"},
		{"24/7 Support", "24-7-support"},
		{"Crème brûlée", "creme-brulee"},
		{"Straße Łódź Ærø", "strasse-lodz-aero"},
		{"../../etc", "etc"},
		{"%2e%2e", "2e2e"},
		{"Ｆｕｌｌ", "full"},
		{"İstanbul", "istanbul"},
		{"Поддержка", ""},
		{"ada+calls", "ada-calls"},
		{"a -- b", "a-b"},
		{strings.Repeat("x", 49) + "-y", strings.Repeat("x", 49)},
	}

	for _, tt := range tests {
		if got := slug(tt.text); got != tt.want {
			t.Errorf("slug(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// FuzzNames derives names, slugs and digests from arbitrary text. The slug of a slug must be the
// same slug. Text of any length must take at most 10 ms.
func FuzzNames(f *testing.F) {
	seeds := []string{
		"Front desk", "../x", "\xff", "e\u0301", "ﷺ", "ad\u200da", "--a--",
		strings.Repeat("a\u0301", 1<<12),
		"a" + strings.Repeat("\u0301\u0316", 1<<12),
		strings.Repeat("\ufdfa", 1<<12),
		strings.Repeat("-", 1<<15),
		strings.Repeat("\u0430a\u05d0", 1<<12),
		strings.Repeat("../", 1<<13),
	}
	for _, seed := range seeds {
		f.Add(seed)
	}

	// At most 255 characters are examined. This is the maximum length of a name.
	bound := fuzzcost.Bound{CPU: 10 * time.Millisecond, Heap: 1 << 20}
	f.Fuzz(func(t *testing.T, text string) {
		bound.Check(t, len(text), func() {
			name := slug(text)
			if again := slug(name); again != name {
				t.Errorf("slug(%q) = %q, whose slug is %q, want the same", text, name, again)
			}
			if len(name) > 50 {
				t.Errorf("slug(%q) = %q has %d bytes, want at most 50", text, name, len(name))
			}
			if err := checkName("name", name); err != nil {
				t.Errorf("slug(%q) = %q, which is not a name: %v", text, name, err)
			}
			_ = checkName("name", text)
			if len(text) > 4*maxText {
				return // too long for a name; nameDigest is only called for names
			}
			if d := nameDigest(text); len(d) != 0 && len(d) != 64 {
				t.Errorf("nameDigest(%q) = %q, want 64 characters or none", text, d)
			}
		})
	})
}
