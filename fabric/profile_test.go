package fabric

import "testing"

// TestEmailHosts shows that the host of an email has only one spelling. Look-alikes that browsers
// and mail servers read as plain letters and dots are not accepted as separate emails.
func TestEmailHosts(t *testing.T) {
	tests := []struct {
		email string
		ok    bool
	}{
		{"ada@example.com", true},
		{"ada@EXAMPLE.com", true},
		{"ada@b\u00fccher.example", true},
		{"ada@bu\u0308cher.example", true}, // the same after NFC
		{"ada@\u4f8b\u3048.example", true},
		{"ada@\uff45xample.com", false},              // a full-width e
		{"ada@\uff25xample.com", false},              // a full-width E
		{"ada@example\uff0ecom", false},              // a full-width dot
		{"ada@example\u3002com", false},              // an ideographic full stop
		{"ada@example\uff61com", false},              // a half-width full stop
		{"ada@ex\u00aample.com", false},              // a feminine ordinal indicator
		{"ada@\U0001d41e\U0001d431ample.com", false}, // mathematical letters
		{"ada\uff20example.com", false},              // a full-width @
		{"ada@ex\ufb03n.example", false},             // a ligature
		{"ada@\u2460.example", false},                // a digit in a circle
	}

	for _, tt := range tests {
		if err := CheckEmail("email", tt.email); (err == nil) != tt.ok {
			t.Errorf("CheckEmail(%q) = %v, want ok %v", tt.email, err, tt.ok)
		}
	}
}
