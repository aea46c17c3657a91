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
	tests := []struct {
		name          string
		binding       string
		claim         string
		isKey         bool
		isCertificate bool
	}{
		{
			name:  "not bound",
			claim: `null`,
		},
		{
			name:    "bound to a key",
			binding: key,
			claim:   `{"jkt":"` + key + `"}`,
			isKey:   true,
		},
		{
			name:          "bound to a certificate",
			binding:       certificate,
			claim:         `{"x5t#S256":"n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"}`,
			isCertificate: true,
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(cnf.ClaimOf(tt.binding))
			if err != nil || string(got) != tt.claim {
				t.Fatalf("ClaimOf = %s, %v, want %s", got, err, tt.claim)
			}
			var claim *cnf.Claim
			if err := json.Unmarshal(got, &claim); err != nil {
				t.Fatal(err)
			}
			if binding := claim.Binding(); binding != tt.binding {
				t.Errorf("the binding of the claim is %q, want %q", binding, tt.binding)
			}
			if isKey := cnf.IsKey(tt.binding); isKey != tt.isKey {
				t.Errorf("IsKey = %t, want %t", isKey, tt.isKey)
			}
			if isCertificate := cnf.IsCertificate(tt.binding); isCertificate != tt.isCertificate {
				t.Errorf("IsCertificate = %t, want %t", isCertificate, tt.isCertificate)
			}
		})
	}
}
