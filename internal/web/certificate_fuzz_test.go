package web

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzCertificate shows that no header with a certificate makes the parser panic, and that a
// certificate from X-Forwarded-Client-Cert contains separators only if the header has quotes.
func FuzzCertificate(f *testing.F) {
	der := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("0\x820", 1000)))
	pem := url.PathEscape("-----BEGIN CERTIFICATE-----\n" + der + "\n-----END CERTIFICATE-----\n")
	for _, value := range []string{
		":" + der + ":", ":" + der, "::", pem, `Hash=1;Cert="` + pem + `";Subject="CN=\",x"`,
		`Subject="CN=;Cert=x",Cert=` + pem, `Cert=` + pem + `;Cert=` + pem, strings.Repeat(`";`, 8_000),
		strings.Repeat(`\`, 16_000), strings.Repeat("%2", 8_000), strings.Repeat("-----BEGIN CERTIFICATE-----\n", 500),
	} {
		f.Add(value)
	}

	bound := fuzzcost.Bound{CPU: 2 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 256 << 10, PerByte: 64}
	f.Fuzz(func(t *testing.T, value string) {
		bound.Check(t, len(value), func() {
			parseCertificate(value)
			text, ok := envoyCertificate(value)
			if ok && strings.ContainsAny(text, `";,`) && !strings.Contains(value, `"`) {
				t.Errorf("the certificate in %q is %q", value, text)
			}
		})
	})
}
