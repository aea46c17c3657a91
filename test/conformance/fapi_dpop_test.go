package conformance

import (
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// proofWith returns a module that changes claims of its DPoP proofs. The provider must accept these
// proofs.
func proofWith(changes func() members) func(*module) {
	return func(m *module) {
		b := m.bank()
		r := m.transfer(b)
		form := r.tokenForm(r.code(r.answer()))
		t := r.received(m.token(b, form, changes()), r.Get("nonce"))

		userinfo := m.op.endpoint(m, "userinfo_endpoint")
		proof := m.proof(b, "GET", userinfo, t.AccessToken, changes())
		m.op.Get(m, userinfo, harness.Header("Authorization", "DPoP "+t.AccessToken),
			harness.Header("DPoP", proof)).Want(m, 200)
	}
}

// pushProof returns the header with a DPoP proof for pushing the request.
func (r transfer) pushProof(b bank) harness.Option {
	r.m.Helper()
	return harness.Header("DPoP",
		r.m.proof(b, "POST", r.m.op.endpoint(r.m, "pushed_authorization_request_endpoint"), "", nil))
}

// keysDiffer pushes a request with the thumbprint of one key and a proof that another key signed.
func keysDiffer(m *module) {
	b := m.bank()
	r := m.transfer(b, "dpop_jkt", m.thumbprint(m.otherHolder(b)))
	m.wantRefused(r.push(r.pushProof(b)), "invalid_dpop_proof", "invalid_request")
}

// boundCode returns a module that binds the code to a key, by a proof or by dpop_jkt. The module
// redeems the code with the same key or with a different key.
func boundCode(byProof, same bool) func(*module) {
	return func(m *module) {
		b := m.bank()
		r := m.transfer(b, "dpop_jkt", m.thumbprint(b))
		var options []harness.Option
		if byProof {
			r = m.transfer(b)
			options = append(options, r.pushProof(b))
		}
		form := r.tokenForm(r.code(r.answer(options...)))
		if same {
			r.received(m.token(b, form, nil), r.Get("nonce"))
			return
		}
		m.wantRefused(m.token(m.otherHolder(b), form, nil), "invalid_dpop_proof", "invalid_grant", "invalid_request")
	}
}

// wrongProofs uses an access token with wrong proofs, and finally with a valid one.
func wrongProofs(m *module) {
	b, at := m.bank(), m.op.endpoint(m, "userinfo_endpoint")
	token := m.transfer(b).complete().AccessToken
	other, public := m.otherHolder(b), jose.JSONWebKey{Key: b.holder.Public()}
	proof := func(changes members) string { return m.proof(b, "GET", at, token, changes) }
	head := func(head members) string {
		return m.sign(b.holder, jose.ES256, head, members{
			"jti": thumbprintOf(m, newKey(m).Public()),
			"htm": "GET",
			"htu": at,
			"iat": inSeconds(0),
			"ath": sumOf(token),
		})
	}
	good := proof(nil)

	for name, one := range map[string]string{
		"no jti": proof(members{"jti": nil}), "no htm": proof(members{"htm": nil}),
		"no htu": proof(members{"htu": nil}), "no iat": proof(members{"iat": nil}),
		"no ath":          proof(members{"ath": nil}),
		"a different htm": proof(members{"htm": "POST"}), "a different htu": proof(members{"htu": at + "/x"}),
		"an iat of an hour ago":    proof(members{"iat": inSeconds(-3600)}),
		"an iat in an hour":        proof(members{"iat": inSeconds(3600)}),
		"a different ath":          proof(members{"ath": sumOf("x")}),
		"an ath that is the token": proof(members{"ath": token}),
		"a different typ":          head(members{"typ": "JWT", "jwk": public}), "no typ": head(members{"jwk": public}),
		"no jwk":               head(members{"typ": "dpop+jwt"}),
		"a private jwk":        head(members{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: b.holder}}),
		"the jwk of another":   head(members{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: other.holder.Public()}}),
		"a different key":      m.proof(other, "GET", at, token, nil),
		"an altered signature": good[:len(good)-8] + "AAAAAAAA",
		"unsigned":             unsignedClaims(m, members{"jti": "x", "htm": "GET", "htu": at, "iat": inSeconds(0)}),
		"not a JWT":            "x", "an empty proof": "",
	} {
		a := m.op.Get(m, at, harness.Header("Authorization", "DPoP "+token), harness.Header("DPoP", one))
		m.check(a.Status == 400 || a.Status == 401, "a proof with %s = %d %s", name, a.Status, a.Body)
	}

	bound := harness.Header("Authorization", "DPoP "+token)
	m.op.Get(m, at, bound).Want(m, 400, 401)
	m.op.Get(m, at, bound, harness.Header("DPoP", proof(nil)), harness.AddHeader("DPoP", proof(nil))).Want(m, 400, 401)
	m.op.Get(m, at, harness.Bearer(token), harness.Header("DPoP", proof(nil))).Want(m, 400, 401)
	m.op.Get(m, at, harness.Bearer(token)).Want(m, 400, 401)

	m.op.Get(m, at, bound, harness.Header("DPoP", good)).Want(m, 200)
	m.op.Get(m, at, bound, harness.Header("DPoP", good)).Want(m, 400, 401) // a replay
	upper := proof(members{"htu": strings.Replace(at, "http://", "HTTP://", 1) + "?a=b#c"})
	m.op.Get(m, at, bound, harness.Header("DPoP", upper)).Want(m, 200)
}
