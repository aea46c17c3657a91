package cnf_test

import (
	"encoding/json"
	"testing"

	"github.com/selvage/selvage/internal/cnf"
)

// TestClaim shows that a binding converted to a claim and back is unchanged.
func TestClaim(t *testing.T) {
	const key = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
	certificate := cnf.OfCertificate([]byte("test"))
	for binding, want := range map[string]string{
		"":          `null`,
		key:         `{"jkt":"` + key + `"}`,
		certificate: `{"x5t#S256":"n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"}`,
	} {
		got, err := json.Marshal(cnf.ClaimOf(binding))
		if err != nil || string(got) != want {
			t.Errorf("ClaimOf(%q) = %s, %v, want %s", binding, got, err, want)
		}
		var claim *cnf.Claim
		if err := json.Unmarshal(got, &claim); err != nil || claim.Binding() != binding {
			t.Errorf("the binding of %s is %q, %v, want the original binding", got, claim.Binding(), err)
		}
		if cnf.IsCertificate(binding) != (binding == certificate) || cnf.IsKey(binding) != (binding == key) {
			t.Errorf("%q is taken for another kind of binding", binding)
		}
	}
}
