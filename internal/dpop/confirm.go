package dpop

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// Confirm checks how a request uses an access token. If a token is bound to a key, the request
// needs the scheme DPoP and a proof signed with the key (RFC 9449, sections 7.1 and 7.2). Other
// tokens must not use this scheme. If a token is bound to a certificate, the client must have shown
// this certificate on the connection (RFC 8705, section 3). If the request does not meet these
// conditions, the error is problem.Unauthenticated. If the use of the proof cannot be stored,
// Confirm returns the error of the store.
func (v *Verifier) Confirm(r *http.Request, token, binding string) error {
	proven := usesDPoP(r)
	if proven != cnf.IsKey(binding) {
		return problem.NoCredentials().Because(
			"the scheme DPoP is required for tokens that are bound to a key, and forbidden for others")
	}
	if proven {
		return v.confirmKey(r, token, binding)
	}
	if binding != "" && web.CertificateBinding(r) != binding {
		return problem.New(problem.Unauthenticated, "invalid_token",
			"the access token is bound to a certificate that the connection does not have")
	}
	return nil
}

// usesDPoP reports whether a request has the scheme DPoP.
func usesDPoP(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "DPoP")
}

// confirmKey checks the proof in a request whose token is bound to the key with this thumbprint.
func (v *Verifier) confirmKey(r *http.Request, token, thumbprint string) error {
	holder, err := v.Verify(r.Context(), Proofs(r), Use{Method: r.Method, Path: r.URL.Path, Token: token})
	if err != nil {
		return asUnauthenticated(err)
	}
	if holder != thumbprint {
		return asUnauthenticated(invalid("it is not signed with the key that the access token is bound to"))
	}
	return nil
}

// ConfirmRPC checks the proof in a relay request whose token is bound to a key. If the proof is not
// valid, the error is problem.Unauthenticated. If the use of the proof cannot be stored, ConfirmRPC
// returns the error of the store.
func (v *Verifier) ConfirmRPC(ctx context.Context, method, proof, thumbprint string) error {
	holder, err := v.Verify(ctx, []string{proof}, Use{RPC: method})
	if err != nil {
		return asUnauthenticated(err)
	}
	if holder != thumbprint {
		return asUnauthenticated(invalid("it is not signed with the key that the token is bound to"))
	}
	return nil
}

// asUnauthenticated converts the error for an invalid proof to an error for invalid credentials. It
// returns other errors unchanged.
func asUnauthenticated(err error) error {
	p := problem.First(err)
	if p == nil || p.Kind != problem.Invalid {
		return err
	}
	return problem.New(problem.Unauthenticated, p.Code, "%s", p.Message)
}

// Challenge returns the value of WWW-Authenticate for a request that was refused with err. If the
// request has the scheme DPoP, this is the challenge from RFC 9449, section 7.1. Otherwise it is
// the value passed as other.
func Challenge(r *http.Request, err error, other string) string {
	if !usesDPoP(r) {
		return other
	}
	code := "invalid_token"
	if p := problem.First(err); p != nil && (p.Code == "invalid_dpop_proof" || p.Code == "use_dpop_nonce") {
		code = p.Code
	}
	return fmt.Sprintf(`DPoP realm="selvage", error=%q, algs=%q`, code, strings.Join(Algorithms(), " "))
}
