package fabric_test

import (
	"testing"

	"github.com/selvage/selvage/fabric"
)

// TestMayCallUser shows that the user in the URI of a gateway is held to the rules for phone numbers, in
// whatever form it contains one.
func TestMayCallUser(t *testing.T) {
	p := fabric.Project{OutboundCalls: fabric.OutboundOn, OutboundPrefixes: "+49"}
	for user, want := range map[string]string{
		"": "", "trunk": "", "600": "", "queue-4711000": "", "+4930123456": "", "4930123456": "", "004930123456": "",
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
		"4930123456789012345":          fabric.ReasonPrefix,
	} {
		if got := p.MayCallUser(user); got != want {
			t.Errorf("calling the user %q is refused for %q, want %q", user, got, want)
		}
	}
}
