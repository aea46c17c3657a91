package fabrictest

import (
	"testing"

	"github.com/selvage/selvage/fabric"
)

// TestMayCallUser shows that the user in the URI of a gateway must follow the rules for phone
// numbers if it contains a phone number in any form.
func TestMayCallUser(t *testing.T) {
	p := fabric.Project{OutboundCalls: fabric.OutboundOn, OutboundPrefixes: "+49"}
	for user, want := range map[string]string{
		"":              "",
		"trunk":         "",
		"600":           "",
		"queue-4711000": "",
		"+4930123456":   "",
		"4930123456":    "",
		"004930123456":  "",

		"+49900123456":                 fabric.ReasonExpensive,
		"49900123456":                  fabric.ReasonExpensive,
		"0049900123456":                fabric.ReasonExpensive,
		"+49900123456;phone-context=x": fabric.ReasonExpensive,
		"%2B49900123456":               fabric.ReasonExpensive,
		"+49%390012345":                fabric.ReasonExpensive,
		"(49)900-123456":               fabric.ReasonExpensive,
		"++49900123456":                fabric.ReasonExpensive,
		"+18765550100;ext=1":           fabric.ReasonPrefix,
		"0900123456":                   fabric.ReasonPrefix,
		"*6749900123456":               fabric.ReasonPrefix,
		"*31*49900123456":              fabric.ReasonPrefix,
		"49900,123456":                 fabric.ReasonPrefix,
		"4930123456789012345":          fabric.ReasonPrefix,
	} {
		if got := p.MayCallUser(user); got != want {
			t.Errorf("calling the user %q is refused for %q, want %q", user, got, want)
		}
	}
}

// TestExpensiveRanges shows that the prefix of a country does not permit calls to expensive numbers,
// but a longer prefix does. Ordinary numbers with similar digits may be called.
func TestExpensiveRanges(t *testing.T) {
	p := fabric.Project{
		OutboundCalls:    fabric.OutboundOn,
		OutboundPrefixes: "+1 +27 +31 +32 +33 +34 +351 +36 +385 +386 +39 +41 +421 +43 +44 +46 +47 +48 +49 +81 +8",
	}
	for name, numbers := range map[string][]string{
		"satellites": {"+870773123456", "+881612345678", "+882161234567", "+88351000000"},
		"premium rate": {
			"+19005550100", "+49900123456", "+43900123456", "+449011234567", "+3690123456", "+38560123456",
		},
		"directory inquiries":  {"+4911833", "+43118811", "+3411811"},
		"pagers":               {"+447600123456"},
		"personal numbers":     {"+447012345678", "+49700123456", "+15005550100", "+15335550100", "+41878123456"},
		"services of carriers": {"+17005550100", "+16005550100", "+16225550100"},
		"shared cost": {
			"+49180123456", "+33820123456", "+41848123456", "+39848123456", "+34902123456",
			"+4677123456", "+48801123456", "+351707123456", "+2786123456", "+81570123456",
		},
		"islands that look nearby": {"+18765550100", "+12425550100"},
	} {
		for _, number := range numbers {
			if got := p.MayCall(number); got != fabric.ReasonExpensive {
				t.Errorf("%s: calling %s is refused for %q, want %q", name, number, got, fabric.ReasonExpensive)
			}
			named := fabric.Project{OutboundCalls: fabric.OutboundOn, OutboundPrefixes: fabric.Prefixes(number[:7])}
			if got := named.MayCall(number); got != "" {
				t.Errorf("%s: calling %s is refused for %q although a prefix names it", name, number, got)
			}
		}
	}

	for place, number := range map[string]string{
		"Reading":              "+441181234567",
		"Middelburg":           "+31118123456",
		"Arkansas":             "+15015550100",
		"Oregon":               "+15415550100",
		"North Dakota":         "+17015550100",
		"Mississippi":          "+16015550100",
		"Berlin":               "+4930123456",
		"Vienna":               "+4315123456",
		"Norrköping":           "+4611123456",
		"Jönköping":            "+4636123456",
		"Geneva":               "+41221234567",
		"Liège":                "+3242123456",
		"a mobile in Germany":  "+491701234567",
		"a mobile in Slovakia": "+421905123456",
		"New York":             "+12125550100",
	} {
		if got := p.MayCall(number); got != "" {
			t.Errorf("calling %s in %s is refused for %q, want it permitted", number, place, got)
		}
	}
}
