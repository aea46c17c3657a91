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

// parseAttribute parses a type and a value, separated by an equals sign.
func parseAttribute(text string) (attribute, error) {
	name, value, hasValue := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	oid := attributeTypes[strings.ToUpper(name)]
	if oid == "" {
		oid = name
	}
	if !hasValue || !isOID(oid) {
		return attribute{}, fmt.Errorf("%q is not an attribute type", name)
	}

	value = strings.TrimLeft(value, " ")
	if strings.HasPrefix(value, "#") {
		return attribute{}, errors.New("values in hexadecimal form are not supported")
	}
	unescaped, err := unescapeDN(value)
	if err != nil {
		return attribute{}, err
	}
	return attribute{oid: oid, value: unescaped}, nil
}

// isOID reports whether text is an object identifier, such as 2.5.4.3.
func isOID(text string) bool {
	parts := strings.Split(text, ".")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool {
		n, err := strconv.ParseUint(part, 10, 31)
		return err != nil || strconv.FormatUint(n, 10) != part
	})
}

// unescapeDN decodes the escapes in a value, and removes unescaped spaces at its end.
func unescapeDN(text string) (string, error) {
	var value []byte
	kept := 0 // length up to the last byte that is not an unescaped space

	for text != "" {
		c := text[0]
		text = text[1:]
		switch c {
		case '"', ';', '<', '>', 0:
			return "", errDN
		case '\\':
			escaped, rest, err := cutEscaped(text)
			if err != nil {
				return "", err
			}
			value = append(value, escaped)
			kept = len(value)
			text = rest
		case ' ':
			value = append(value, c)
		default:
			value = append(value, c)
			kept = len(value)
		}
	}
	return string(value[:kept]), nil
}

// cutEscaped returns the byte that text, which follows a backslash, begins with, and the rest of the
// text. The byte is written as itself or as two hexadecimal digits.
func cutEscaped(text string) (escaped byte, rest string, err error) {
	if text != "" && strings.IndexByte(` "#+,;<=>\`, text[0]) >= 0 {
		return text[0], text[1:], nil
	}
	if len(text) < 2 {
		return 0, "", errDN
	}
	decoded, err := hex.DecodeString(text[:2])
	if err != nil {
		return 0, "", errDN
	}
	return decoded[0], text[2:], nil
}

// matchesDN reports whether subject, the subject of a certificate in DER, has the name want.
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
