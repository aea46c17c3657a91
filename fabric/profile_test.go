package fabric

import (
	"strings"
	"testing"
)

// TestIsWebPage shows that a long URL is accepted, unless it contains a character that cannot be stored.
func TestIsWebPage(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("x", maxText-21)
	for text, want := range map[string]bool{
		long + "\u00e9/ada":     true, // byte maxText is inside the letter
		long + "xx/\x01":        false,
		long + "xx/\u0085":      false,
		long + "xx/\xff":        false,
		long + long + long:      true,
		"https://example.com/":  true,
		"ftp://example.com/":    false,
		"https://a@example.com": false,
	} {
		if got := isWebPage(text); got != want {
			t.Errorf("isWebPage(%q) = %t, want %t", text, got, want)
		}
	}
}

// TestLocale shows that a locale must be a language tag that is not longer than other texts.
func TestLocale(t *testing.T) {
	for locale, want := range map[string]bool{
		"":                                      true,
		"en":                                    true,
		"zh-Hant-TW":                            true,
		"de-x-dialect":                          true,
		"english language":                      false,
		"en-x" + strings.Repeat("-dialect", 31): true,
		"en-x" + strings.Repeat("-dialect", 32): false,
	} {
		err := StandardClaims{Locale: locale}.check()
		if accepted := err == nil; accepted != want {
			t.Errorf("check of the locale %q = %v, want it accepted: %t", locale, err, want)
		}
	}
}

// TestEmailHosts shows that the host of an email has only one spelling. Look-alikes that browsers
// and mail servers read as plain letters and dots are not accepted as separate emails.
func TestEmailHosts(t *testing.T) {
	for _, email := range []string{
		"ada@example.com",
		"ada@EXAMPLE.com",
		"ada@b\u00fccher.example",
		"ada@bu\u0308cher.example", // the same after NFC
		"ada@\u4f8b\u3048.example",
	} {
		if err := CheckEmail("email", email); err != nil {
			t.Errorf("CheckEmail(%q) = %v, want no error", email, err)
		}
	}

	for _, email := range []string{
		"ada@\uff45xample.com",              // a full-width e
		"ada@\uff25xample.com",              // a full-width E
		"ada@example\uff0ecom",              // a full-width dot
		"ada@example\u3002com",              // an ideographic full stop
		"ada@example\uff61com",              // a half-width full stop
		"ada@ex\u00aample.com",              // a feminine ordinal indicator
		"ada@\U0001d41e\U0001d431ample.com", // mathematical letters
		"ada\uff20example.com",              // a full-width @
		"ada@ex\ufb03n.example",             // a ligature
		"ada@\u2460.example",                // a digit in a circle
	} {
		if err := CheckEmail("email", email); err == nil {
			t.Errorf("CheckEmail(%q): got nil, want an error", email)
		}
	}
}
