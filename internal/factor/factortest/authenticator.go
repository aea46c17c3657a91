// Package factortest provides an in-memory passkey authenticator and the codes of an authenticator
// app, for tests. Both follow the standards and share no code with the server's libraries.
package factortest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// An Authenticator creates and uses passkeys (Web Authentication, section 6). Its fields let tests
// make it misbehave.
type Authenticator struct {
	Origin     string // the origin of the requesting page
	RPID       string // "" means the RPID in the options
	Unverified bool   // the answers say that the user was not verified
	Synced     bool   // the answers say that the key may be on several devices
	Counts     bool   // each use increments the signature counter
	Count      uint32 // the signature counter
	Handle     []byte // the user handle to send; nil means the passkey's
	ID         []byte // the credential id to send; nil means the passkey's

	id, user []byte
	key      *ecdsa.PrivateKey
}

type options struct {
	Challenge string `json:"challenge"`
	RPID      string `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
}

// These are flags of authenticator data (section 6.1).
const (
	present  = 1 << 0
	verified = 1 << 2
	eligible = 1 << 3
	backedUp = 1 << 4
	attested = 1 << 6
)

// Create makes the passkey, and returns the answer that a page posts to the server.
func (a *Authenticator) Create(raw []byte) []byte {
	o := read(raw)

	a.id = make([]byte, 32)
	rand.Read(a.id)
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // rand.Reader never fails
	a.user = decode(o.User.ID)
	point, _ := a.key.PublicKey.Bytes() // never fails for P-256

	// This is a COSE key for ES256 (RFC 9053, section 7.1.1) in CBOR.
	cose := concat([]byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20}, point[1:33],
		[]byte{0x22, 0x58, 0x20}, point[33:])

	data := concat(a.data(o.RP.ID, attested), make([]byte, 16),
		binary.BigEndian.AppendUint16(nil, uint16(len(a.id))), a.id, cose)
	object := concat([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59"),
		binary.BigEndian.AppendUint16(nil, uint16(len(data))), data)
	return a.answer(map[string]any{
		"clientDataJSON":    encode(a.clientData("webauthn.create", o.Challenge)),
		"attestationObject": encode(object),
		"transports":        []string{"internal"},
	})
}

// Get uses the passkey, and returns the answer that a page posts to the server.
func (a *Authenticator) Get(raw []byte) []byte {
	o := read(raw)
	if a.Counts {
		a.Count++
	}

	client, data := a.clientData("webauthn.get", o.Challenge), a.data(o.RPID, 0)
	sum := sha256.Sum256(client)
	digest := sha256.Sum256(concat(data, sum[:]))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		panic(err)
	}

	handle := a.user
	if a.Handle != nil {
		handle = a.Handle
	}
	return a.answer(map[string]any{
		"clientDataJSON":    encode(client),
		"authenticatorData": encode(data),
		"signature":         encode(signature),
		"userHandle":        encode(handle),
	})
}

func (a *Authenticator) answer(response map[string]any) []byte {
	id := a.id
	if a.ID != nil {
		id = a.ID
	}
	return must(json.Marshal(map[string]any{
		"id":                     encode(id),
		"rawId":                  encode(id),
		"type":                   "public-key",
		"response":               response,
		"clientExtensionResults": map[string]any{},
	}))
}

func (a *Authenticator) clientData(kind, challenge string) []byte {
	return must(json.Marshal(map[string]any{
		"type":        kind,
		"challenge":   challenge,
		"origin":      a.Origin,
		"crossOrigin": false,
	}))
}

// data returns the beginning of authenticator data: the hash of the RP ID, the flags and the counter.
// Create appends the credential to it.
func (a *Authenticator) data(rpID string, flags byte) []byte {
	if a.RPID != "" {
		rpID = a.RPID
	}
	flags |= present
	if !a.Unverified {
		flags |= verified
	}
	if a.Synced {
		flags |= eligible | backedUp
	}
	sum := sha256.Sum256([]byte(rpID))
	return binary.BigEndian.AppendUint32(append(sum[:], flags), a.Count)
}

func read(raw []byte) (o options) {
	if err := json.Unmarshal(raw, &o); err != nil {
		panic(fmt.Sprintf("options: %v", err))
	}
	return o
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func concat(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
func decode(s string) []byte { return must(base64.RawURLEncoding.DecodeString(s)) }

// Code returns what an authenticator app with the given base32 secret shows at the given time
// (RFC 6238, section 4; RFC 4226, section 5.3).
func Code(secret string, at time.Time) string {
	key := must(base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret))
	mac := hmac.New(sha1.New, key)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(at.Unix()/30)))
	sum := mac.Sum(nil)
	from := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[from:])&0x7fffffff%1_000_000)
}
