package idp

import "github.com/selvage/selvage/internal/cnf"

// Binding returns the key or certificate to which a new token of the client is bound, or "". jkt is
// the thumbprint of the key that the client has proved to have. certificate is the binding to the
// certificate of its connection. Both may be "". A client with the profile FAPI2 that sends no
// proof gets tokens that are bound to its certificate.
func (c Client) Binding(jkt, certificate string) (string, error) {
	switch {
	case c.CertificateBound && jkt != "":
		return "", oauth("invalid_dpop_proof", "this client's tokens are bound to its certificate, not to a key")
	case jkt != "" || c.DPoPBound:
		return jkt, nil
	case c.CertificateBound || c.Profile == FAPI2:
		return certificate, nil
	}
	return "", nil
}

// mustBind reports whether the client's tokens must be bound to a key or a certificate.
func (c Client) mustBind() bool { return c.DPoPBound || c.CertificateBound || c.Profile == FAPI2 }

// checkBinding returns an error if the client's tokens must be bound but binding is "".
func (c Client) checkBinding(binding string) error {
	switch {
	case binding != "" || !c.mustBind():
		return nil
	case c.CertificateBound:
		return oauth("invalid_request", "this client's tokens are bound to its certificate; "+
			"the connection has none, or it has expired")
	}
	return oauth("invalid_dpop_proof", "this client's tokens are bound to a key; a DPoP proof is missing")
}

// mayRefresh reports whether a client that has proved binding may refresh a grant that was bound to
// old. For clients that sign assertions or authenticate with a certificate, the client
// authentication binds the grant. These clients may have a new key or certificate, because keys are
// renewed more often than grants end (RFC 9449, section 5; RFC 8705, section 6.3). Other clients
// need the same key.
func (c Client) mayRefresh(old, binding string) bool {
	switch {
	case old == "" || old == binding:
		return true
	case binding == "" || c.AuthMethod != AuthPrivateKeyJWT && !c.ByCertificate():
		return false
	}
	return cnf.IsCertificate(old) == cnf.IsCertificate(binding)
}
