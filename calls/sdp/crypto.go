package sdp

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Crypto is a key with which the author of a description encrypts its media (RFC 4568).
type Crypto struct {
	Tag   int
	Suite string
	Key   string // master key and salt; "" if they are not yet known
}

// suites lists the supported suites (RFC 4568, RFC 6188, RFC 7714), the best first.
var suites = []string{"AEAD_AES_256_GCM", "AEAD_AES_128_GCM", "AES_256_CM_HMAC_SHA1_80",
	"AES_CM_128_HMAC_SHA1_80", "AES_256_CM_HMAC_SHA1_32", "AES_CM_128_HMAC_SHA1_32"}

// keyLengths contains the number of bytes of the key and salt of each suite.
var keyLengths = map[string]int{
	"AEAD_AES_256_GCM":        32 + 12,
	"AEAD_AES_128_GCM":        16 + 12,
	"AES_256_CM_HMAC_SHA1_80": 32 + 14,
	"AES_CM_128_HMAC_SHA1_80": 16 + 14,
	"AES_256_CM_HMAC_SHA1_32": 32 + 14,
	"AES_CM_128_HMAC_SHA1_32": 16 + 14,
}

// KeyLength returns the number of bytes of the master key and salt of a suite. For an unsupported
// suite, it returns 0.
func KeyLength(suite string) int { return keyLengths[suite] }

// Suites returns the supported suites in a list separated by spaces. For an empty list, it returns
// all suites.
func Suites(list string) (supported []string) {
	if list == "" {
		return suites
	}
	for name := range strings.FieldsSeq(list) {
		if KeyLength(name) > 0 {
			supported = append(supported, name)
		}
	}
	return supported
}

// maxCrypto limits how many a=crypto lines of a section are read.
const maxCrypto = 16

// addCrypto reads a=crypto:<tag> <suite> inline:<key>. It ignores lines with an unknown suite,
// several keys or a key identifier (MKI). It also ignores lines with session parameters that change
// the encryption, such as UNENCRYPTED_SRTP.
func (s *Section) addCrypto(value string) {
	fields := strings.Fields(value)
	if len(fields) < 3 || len(s.Crypto) == maxCrypto {
		return
	}
	for _, parameter := range fields[3:] {
		if !strings.HasPrefix(parameter, "WSH=") { // a hint for the size of the replay window
			return
		}
	}

	tag, err := strconv.ParseUint(fields[0], 10, 30)
	inline, ok := strings.CutPrefix(fields[2], "inline:")
	text, more, _ := strings.Cut(inline, "|")
	if err != nil || !ok || strings.ContainsAny(more, ":|;") {
		return
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err == nil && len(key) > 0 && len(key) == KeyLength(fields[1]) {
		s.Crypto = append(s.Crypto, Crypto{Tag: int(tag), Suite: fields[1], Key: string(key)})
	}
}

// FindCrypto returns the key for the first of the suites for which the section has a key.
func (s *Section) FindCrypto(suites []string) (c Crypto, ok bool) {
	for _, suite := range suites {
		i := slices.IndexFunc(s.Crypto, func(c Crypto) bool { return c.Suite == suite })
		if i >= 0 {
			return s.Crypto[i], true
		}
	}
	return c, false
}

// IsSecure reports whether the section is audio over SRTP, with keys in the description.
func (s *Section) IsSecure() bool {
	return s.Kind == Audio && (s.Protocol == "RTP/SAVP" || s.Protocol == "RTP/SAVPF")
}

// writeCrypto writes the a=crypto lines.
func (s *Section) writeCrypto(b *strings.Builder) {
	for _, c := range s.Crypto {
		fmt.Fprintf(b, "a=crypto:%d %s inline:%s\r\n", c.Tag, c.Suite, base64.StdEncoding.EncodeToString([]byte(c.Key)))
	}
}
