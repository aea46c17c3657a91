package idp

import (
	"encoding/json"
	"errors"
	"net/url"

	"github.com/selvage/selvage/internal/compact"
)

// Codes and pushed requests are sealed in a binary form, because encoding and decoding JSON would
// take longer than the encryption.

// sealedVersion is the first byte of the binary forms in this file. A new member requires a new
// version. Earlier versions of selvage sealed JSON, which begins with a brace.
const sealedVersion = 1

// usualSize is a size in bytes that is sufficient for most encoded codes and requests.
const usualSize = 512

var errSealed = errors.New("reading sealed content: unknown format")

// isJSON reports whether sealed content is JSON, as earlier versions wrote it.
func isJSON(b []byte) bool { return len(b) > 0 && b[0] == '{' }

// texts returns pointers to the texts of a code, in the order of the binary form.
func (c *sealedCode) texts() [10]*string {
	a := &c.Request
	return [...]*string{
		&c.ID,
		&c.ProjectID,
		&c.SessionID,
		&c.SubjectID,
		&a.ClientID,
		&a.RedirectURI,
		&a.Nonce,
		&a.Challenge,
		&a.JKT,
		&a.Claims.ACR,
	}
}

// lists returns pointers to the lists of a code, in the order of the binary form.
func (c *sealedCode) lists() [5]*[]string {
	a := &c.Request
	return [...]*[]string{
		&c.AMR,
		&a.Scope,
		&a.Resources,
		&a.Claims.Userinfo,
		&a.Claims.IDToken,
	}
}

// MarshalBinary encodes a code. Of the request, it encodes only the fields that are needed to redeem
// the code; see AuthRequest.redeemable.
func (c *sealedCode) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, usualSize)
	b = append(b, sealedVersion)
	b = compact.AppendTime(b, c.Expires)
	b = compact.AppendTime(b, c.AuthTime)
	for _, text := range c.texts() {
		b = compact.AppendText(b, *text)
	}
	for _, list := range c.lists() {
		b = compact.AppendList(b, *list)
	}
	return b, nil
}

// UnmarshalBinary decodes the output of MarshalBinary, or the JSON of earlier versions.
func (c *sealedCode) UnmarshalBinary(b []byte) error {
	if isJSON(b) {
		type plain sealedCode // has no UnmarshalBinary
		return json.Unmarshal(b, (*plain)(c))
	}
	if len(b) == 0 || b[0] != sealedVersion {
		return errSealed
	}

	r := compact.NewReader(b[1:])
	c.Expires = r.Time()
	c.AuthTime = r.Time()
	for _, text := range c.texts() {
		*text = r.Text()
	}
	for _, list := range c.lists() {
		*list = r.List()
	}
	if !r.Done() {
		return errSealed
	}
	return nil
}

// These are the values of the flag in the binary form of a pushed request.
const (
	plainRequest = iota
	signedRequest
)

// MarshalBinary encodes a pushed request.
func (p *pushedRequest) MarshalBinary() ([]byte, error) {
	flag := byte(plainRequest)
	if p.Signed {
		flag = signedRequest
	}
	b := make([]byte, 0, usualSize)
	b = append(b, sealedVersion, flag)
	b = compact.AppendTime(b, p.Expires)
	b = compact.AppendText(b, p.ID)
	b = compact.AppendText(b, p.ClientID)
	for name, values := range p.Params {
		b = compact.AppendText(b, name)
		b = compact.AppendList(b, values)
	}
	return b, nil
}

// UnmarshalBinary decodes the output of MarshalBinary, or the JSON of earlier versions.
func (p *pushedRequest) UnmarshalBinary(b []byte) error {
	if isJSON(b) {
		type plain pushedRequest // has no UnmarshalBinary
		return json.Unmarshal(b, (*plain)(p))
	}
	if len(b) < 2 || b[0] != sealedVersion || b[1] > signedRequest {
		return errSealed
	}

	r := compact.NewReader(b[2:])
	p.Signed = b[1] == signedRequest
	p.Expires = r.Time()
	p.ID = r.Text()
	p.ClientID = r.Text()
	p.Params = url.Values{}
	for r.More() {
		name := r.Text()
		p.Params[name] = r.List()
	}
	if !r.Done() {
		return errSealed
	}
	return nil
}
