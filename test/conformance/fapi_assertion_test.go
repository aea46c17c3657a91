package conformance

import (
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// tokenAssertion returns a module that redeems a code with an assertion whose claims are changed.
// The provider must refuse it.
func tokenAssertion(changes func(op *provider) members) func(*module) {
	return func(m *module) {
		r := m.transfer(m.bank())
		form := r.tokenForm(r.code(r.answer()))
		form.Set("client_assertion", m.bankAssertion(r.bank, changes(m.op)))
		form.Set("client_assertion_type", assertionType)
		m.wantRefused(m.token(r.bank, form, nil), wrongClient...)
	}
}

// pushAssertion returns a module that pushes a request with an assertion whose claims are changed.
// The provider must accept it if status is 201, and otherwise refuse it.
func pushAssertion(status int, changes func(op *provider) members) func(*module) {
	return func(m *module) {
		r := m.transfer(m.bank())
		form := r.form()
		form.Set("client_assertion", m.bankAssertion(r.bank, changes(m.op)))
		form.Set("client_assertion_type", assertionType)
		if a := r.pushForm(form); status == 201 {
			r.reference(a)
		} else {
			m.wantRefused(a, wrongClient...)
		}
	}
}

// fixed returns a function that always returns changes.
func fixed(changes members) func(*provider) members {
	return func(*provider) members { return changes }
}

// claims returns a function that calls changes, for claims that depend on the time but not on the
// provider.
func claims(changes func() members) func(*provider) members {
	return func(*provider) members { return changes() }
}

func inSeconds(seconds int) int64 { return time.Now().Unix() + int64(seconds) }

// assertionMissing redeems a code without an assertion.
func assertionMissing(m *module) {
	r := m.transfer(m.bank())
	form := r.tokenForm(r.code(r.answer()))
	form.Set("client_id", r.bank.ID)
	at := m.op.endpoint(m, "token_endpoint")
	options := []harness.Option{harness.Form(form), harness.Header("DPoP", m.proof(r.bank, "POST", at, "", nil))}
	m.wantRefused(m.op.Post(m, at, options...), wrongClient...)
}

// assertionRS256 signs an assertion with RS256, using a key that may sign only with PS256.
func assertionRS256(m *module) {
	key := rsaKey(m)
	b := newBankWith(m, m.op.Project, m.bank().way, key)
	push := func(status int) {
		v := b.NewFlow("openid").Query // this client need not sign its requests
		v.Set("client_assertion", m.bankAssertion(b, nil))
		v.Set("client_assertion_type", assertionType)
		m.op.Post(m, m.op.endpoint(m, "pushed_authorization_request_endpoint"), harness.Form(v),
			harness.Header(certificateHeader, b.certificate)).Want(m, status)
	}
	push(201)
	b.signing.Algorithm = "RS256"
	push(401)
}

// short returns a copy of the module for another provider, with a lifetime of one second. It also
// returns a bank at that provider. lifetime is the environment variable that sets the lifetime.
func (m *module) short(lifetime string) (*module, bank) {
	m.Helper()
	s := harness.StartConfig(m, harness.Config{Args: trustingProxy, Env: []string{lifetime + "=1s"}})
	other := *m
	other.op = newProviderOf(m.T, s)
	other.browser = other.op.Browser()
	var flags []string
	if m.isSigned() {
		flags = messageSigning
	}
	return &other, newBank(m, other.op.Project, wayOf(m.kind), flags...)
}

// codeExpired redeems a code that has expired.
func codeExpired(m *module) {
	short, b := m.short("SELVAGE_TOKENS__CODE")
	r := short.transfer(b)
	form := r.tokenForm(r.code(r.answer()))
	short.await(time.Now().Add(2 * time.Second))
	short.wantRefused(short.token(b, form, nil), wrongGrant...)
}

// referenceExpired opens a pushed request that has expired.
func referenceExpired(m *module) {
	short, b := m.short("SELVAGE_TOKENS__PUSHED")
	r := short.transfer(b)
	uri := r.reference(r.push())
	short.await(time.Now().Add(2 * time.Second))
	r.wantRefusedPage(r.visit(uri), "invalid_request_uri", "invalid_request")
}

// object returns a module that changes claims of its request object. The provider must accept it if
// status is 201, and otherwise refuse it.
func object(status int, changes func(op *provider) members) func(*module) {
	return func(m *module) {
		r := m.transfer(m.bank())
		r.object = changes(m.op)
		if a := r.push(); status == 201 {
			r.reference(a)
		} else {
			m.wantRefused(a, wrongRequest...)
		}
	}
}

// objectBy returns a module whose request object comes from sign. The provider must refuse it.
func objectBy(sign func(*module, transfer) string) func(*module) {
	return func(m *module) {
		r := m.transfer(m.bank())
		form := r.form()
		form.Set("request", sign(m, r))
		m.wantRefused(r.pushForm(form), wrongRequest...)
	}
}

func signedBySecond(m *module, r transfer) string {
	m.Helper()
	second := m.secondBank()
	return m.sign(second.signing.Key, jose.ES256, members{"kid": second.signing.KeyID}, r.claims())
}

func altered(m *module, r transfer) string {
	m.Helper()
	text := r.form().Get("request")
	return text[:len(text)-8] + "AAAAAAAA"
}

// unsignedPush pushes plain parameters of a client that must sign its requests.
func unsignedPush(m *module) {
	r := m.transfer(m.bank())
	m.wantRefused(r.pushForm(r.Values), wrongRequest...)
}

// objectRS256 signs a request object with RS256, using a key that may sign only with PS256.
func objectRS256(m *module) {
	key := rsaKey(m)
	b := newBankWith(m, m.op.Project, m.bank().way, key, messageSigning...)
	r := m.transfer(b)
	r.reference(r.push())
	form := m.transfer(b).form()
	form.Set("request", m.sign(key.Key, jose.RS256, members{"kid": key.KeyID}, r.claims()))
	m.wantRefused(r.pushForm(form), wrongRequest...)
}

func noneObject(m *module, r transfer) string {
	m.Helper()
	return unsignedClaims(m, r.claims())
}
