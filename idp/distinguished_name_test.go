package idp

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"strconv"
	"strings"
	"testing"
)

// TestDistinguishedName shows which texts match the name of a certificate's subject.
func TestDistinguishedName(t *testing.T) {
	attribute := func(name, value string) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: oid(attributeTypes[name]), Value: value}
	}
	subject, err := asn1.Marshal(pkix.RDNSequence{
		{attribute("C", "DE")},
		{attribute("O", `Acme, "Inc"`)},
		{attribute("OU", "a"), attribute("L", "b")},
		{attribute("CN", " Jörg #1 ")},
	})
	if err != nil {
		t.Fatal(err)
	}

	for text, want := range map[string]bool{
		`CN=\ Jörg #1\ ,OU=a+L=b,O=Acme\, \"Inc\",C=DE`:                            true,
		`cn = \20J\C3\B6rg \231\20 , l=b + ou=a, 2.5.4.10=Acme\2C \22Inc\22 ,C=DE`: true,
		`CN=\ Jörg #1\ ,OU=a,O=Acme\, \"Inc\",C=DE`:                                false,
		`CN=\ Jörg #1\ ,OU=a+L=c,O=Acme\, \"Inc\",C=DE`:                            false,
		`CN=Jörg #1,OU=a+L=b,O=Acme\, \"Inc\",C=DE`:                                false,
		`CN=\ jörg #1\ ,OU=a+L=b,O=Acme\, \"Inc\",C=DE`:                            false,
		`C=DE,O=Acme\, \"Inc\",OU=a+L=b,CN=\ Jörg #1\ `:                            false,
		`CN=\ Jörg #1\ ,OU=a+L=b,O=Acme\, \"Inc\"`:                                 false,
		`CN=\ Jörg #1\ ,OU=a+L=b,O=Acme\, \"Inc\",C=DE,CN=x`:                       false,
	} {
		name, err := parseDN(text)
		if err != nil {
			t.Errorf("parseDN(%q): %v", text, err)
			continue
		}
		if matches := matchesDN(name, subject); matches != want {
			t.Errorf("%q matches the subject: %t, want %t", text, matches, want)
		}
	}

	for _, text := range []string{
		"", "app", "CN", "=x", "XX=a", "CN=a,", `CN=a\`, `CN=\zz`, `CN="a"`, "CN=#0403", "1=a", "2.05.4=a", "CN=a;O=b",
	} {
		if name, err := parseDN(text); err == nil {
			t.Errorf("parseDN(%q) = %v, want an error", text, name)
		}
	}
}

// oid parses an object identifier.
func oid(text string) (id asn1.ObjectIdentifier) {
	for part := range strings.SplitSeq(text, ".") {
		n, _ := strconv.Atoi(part)
		id = append(id, n)
	}
	return id
}
