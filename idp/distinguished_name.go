package idp

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// attributeTypes maps the names of attribute types in distinguished names to their object
// identifiers. It contains the types in RFC 4514, section 3, and three other common types.
var attributeTypes = map[string]string{
	"CN": "2.5.4.3", "L": "2.5.4.7", "ST": "2.5.4.8", "O": "2.5.4.10", "OU": "2.5.4.11", "C": "2.5.4.6",
	"STREET": "2.5.4.9", "DC": "0.9.2342.19200300.100.1.25", "UID": "0.9.2342.19200300.100.1.1",
	"SERIALNUMBER": "2.5.4.5", "EMAILADDRESS": "1.2.840.113549.1.9.1",
	"ORGANIZATIONIDENTIFIER": "2.5.4.97",
}

// An attribute is one part of a distinguished name.
type attribute struct{ oid, value string }

// errDN is the error for text that is not a distinguished name.
var errDN = errors.New("the syntax is wrong")

// parseDN parses a distinguished name (RFC 4514, section 3), except for values in hexadecimal form.
// Each element is a set of attributes, which usually has one member. The last element of the text
// is the first element of the name.
func parseDN(text string) (name [][]attribute, err error) {
	for _, element := range splitDN(text, ',') {
		var set []attribute
		for _, part := range splitDN(element, '+') {
			a, err := parseAttribute(part)
			if err != nil {
				return nil, err
			}
			set = append(set, a)
		}
		name = append(name, set)
	}
	slices.Reverse(name)
	return name, nil
}

// splitDN returns the parts of text between separators that are not escaped.
func splitDN(text string, separator byte) (parts []string) {
	begin := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case separator:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

func parseAttribute(text string) (a attribute, err error) {
	kind, value, ok := strings.Cut(text, "=")
	kind = strings.TrimSpace(kind)
	a.oid = attributeTypes[strings.ToUpper(kind)]
	if a.oid == "" {
		a.oid = kind
	}
	if !ok || !isOID(a.oid) {
		return a, fmt.Errorf("%q is not an attribute type", kind)
	}

	value = strings.TrimLeft(value, " ")
	if strings.HasPrefix(value, "#") {
		return a, errors.New("values in hexadecimal form are not supported")
	}
	a.value, err = unescapeDN(value)
	return a, err
}

// isOID reports whether text is an object identifier, such as 2.5.4.3.
func isOID(text string) bool {
	parts := strings.Split(text, ".")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool {
		n, err := strconv.ParseUint(part, 10, 31)
		return err != nil || strconv.FormatUint(n, 10) != part
	})
}

// unescapeDN returns a value without its escapes and without spaces at the end that are not escaped.
func unescapeDN(text string) (string, error) {
	var value []byte
	kept := 0 // length up to the last byte that is not an unescaped space

	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == ';' || c == '<' || c == '>' || c == 0:
			return "", errDN
		case c != '\\':
			value = append(value, c)
			if c != ' ' {
				kept = len(value)
			}
			continue
		case i+1 < len(text) && strings.IndexByte(` "#+,;<=>\`, text[i+1]) >= 0:
			value = append(value, text[i+1])
			i++
		default:
			if i+2 >= len(text) {
				return "", errDN
			}
			b, err := hex.DecodeString(text[i+1 : i+3])
			if err != nil {
				return "", errDN
			}
			value = append(value, b[0])
			i += 2
		}
		kept = len(value)
	}

	return string(value[:kept]), nil
}

// matchesDN reports whether want is the name of a certificate's subject in DER.
func matchesDN(want [][]attribute, subject []byte) bool {
	var got pkix.RDNSequence
	rest, err := asn1.Unmarshal(subject, &got)
	return err == nil && len(rest) == 0 && slices.EqualFunc(want, got, matchesSet)
}

// matchesSet reports whether two sets have the same attributes, in any order.
func matchesSet(want []attribute, got pkix.RelativeDistinguishedNameSET) bool {
	return len(want) == len(got) && !slices.ContainsFunc(want, func(a attribute) bool {
		return !slices.ContainsFunc(got, func(g pkix.AttributeTypeAndValue) bool {
			return g.Type.String() == a.oid && g.Value == a.value
		})
	})
}
