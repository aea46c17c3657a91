package recordings_test

import (
	"slices"
	"testing"

	"github.com/selvage/selvage/recordings"
)

func TestDigits(t *testing.T) {
	for party, want := range map[string]string{
		"+1 (415) 555-0134":   "14155550134",
		"+14155550134":        "14155550134",
		"14155550134":         "14155550134",
		"0014155550134":       "14155550134",
		"01114155550134":      "14155550134",
		"+1.415.555.0134":     "14155550134",
		"1-415-555-0134":      "14155550134",
		"tel:+1-415-555-0134": "14155550134",
		"sip:+14155550134@pbx.example.com;user=x": "14155550134",
		`"Ada" <sip:14155550134@10.0.0.1:5060>`:   "14155550134",
		"+1\u00a0415\u202f555\u20110134":          "14155550134",
		"＋１４１５５５５０１３４":                            "14155550134",
		"+1 415 555 0134 ext. 12":                 "14155550134",
		"(415) 555-0134 x7":                       "4155550134",
		"+44 (0)20 7946 0958":                     "442079460958",
		"020 7946 0958":                           "2079460958",
		"011 123 4567":                            "111234567",

		"0":    "0",
		"1000": "1000",

		"/private/ada":          "",
		"/public/a.b-c":         "",
		"sip:ada@example.com":   "",
		"ada@example.com":       "",
		"+":                     "",
		"":                      "",
		"anonymous":             "",
		"1000a":                 "",
		"x12":                   "",
		"123456789012345678901": "",
	} {
		if got := recordings.Digits(party); got != want {
			t.Errorf("Digits(%q) = %q, want %q", party, got, want)
		}
	}
}

func TestTail(t *testing.T) {
	tail := recordings.Tail("+1 (415) 555-0134")
	if tail != "43105555141" {
		t.Errorf("Tail = %q, want the digits in reverse", tail)
	}
	want := []string{"43105555", "431055551", "4310555514"}
	if got := recordings.NationalTails(tail); !slices.Equal(got, want) {
		t.Errorf("NationalTails = %q, want %q", got, want)
	}
	if got := recordings.NationalTails("0001"); got != nil {
		t.Errorf("NationalTails of an extension = %q, want none", got)
	}
}
