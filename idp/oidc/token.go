package oidc

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// A granter creates the tokens for one grant type. The caller has authenticated the client.
type granter func(r *http.Request, c idp.Client, p proven) (idp.TokenSet, error)

// proven holds what a client has proved in a request.
type proven struct {
	binding string    // the key or certificate to which the client's tokens are bound; "" means none
	uses    *idp.Uses // the uses of the proofs
}

// granters returns the granters of the supported grant types. The library rejects all others
// because server does not implement them.
func (s *server) granters() map[string]granter {
	return map[string]granter{
		idp.GrantCode:              s.grantCode,
		idp.GrantRefresh:           s.grantRefresh,
		idp.GrantClientCredentials: s.grantClient,
		idp.GrantDevice:            s.grantDevice,
	}
}

// errGrantType is logged if the library rejects an unsupported grant.
var errGrantType = problem.New(problem.Invalid, "unsupported_grant_type", "the grant type is missing or unsupported")

// token serves POST /oauth/token (RFC 6749, section 3.2). It is the busiest endpoint, so it handles
// all supported grants itself. In zitadel/oidc, handling a grant takes as much time as signing a
// token.
func (s *server) token(library http.Handler) clientHandler {
	granters := s.granters()
	return func(w http.ResponseWriter, r *http.Request, cc *op.ClientCredentials) {
		grant, ok := granters[r.Form.Get("grant_type")]
		if !ok {
			web.Refuse(r.Context(), errGrantType)
			library.ServeHTTP(w, r)
			return
		}

		set, err := s.runGrant(r, cc, grant)
		if err != nil {
			op.WriteError(w, r, s.status(r.Context(), err), nil)
			return
		}
		if err := web.JSON(w, http.StatusOK, tokensOf(set)); err != nil {
			web.LogInternal(r, s.log, err)
		}
	}
}

// runGrant authenticates the client and runs the requested grant.
func (s *server) runGrant(r *http.Request, cc *op.ClientCredentials, grant granter) (idp.TokenSet, error) {
	if cc.ClientID == "" && cc.ClientAssertion == "" {
		return idp.TokenSet{}, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "invalid_request",
			Message: "client_id or client_assertion must be provided",
		}
	}

	uses := s.Assertions.Uses()
	c, err := s.authenticate(r.Context(), r.Header, web.Certificates(r), cc, uses)
	if err != nil {
		return idp.TokenSet{}, err
	}

	audit.As(r.Context(), audit.Client, c.ID)
	set, err := s.grantTo(r, c, uses, grant)
	if err != nil && (c.AuthMethod != idp.AuthNone || !errors.Is(err, idp.ErrUnknown)) {
		// A refused request also uses up its assertion and its proof. A public client's request
		// with an invented code writes nothing, because anyone can send it.
		if used := uses.Store(r.Context()); used != nil {
			return idp.TokenSet{}, used
		}
	}
	return set, err
}

// grantTo runs the grant that an authenticated client requested.
func (s *server) grantTo(r *http.Request, c idp.Client, uses *idp.Uses, grant granter) (idp.TokenSet, error) {
	kind := r.Form.Get("grant_type")
	if !c.May(kind) {
		return idp.TokenSet{}, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "unauthorized_client",
			Message: fmt.Sprintf("grant_type %q not allowed", kind),
		}
	}
	jkt, err := s.provenKey(r, uses)
	if err != nil {
		return idp.TokenSet{}, err
	}
	binding, err := c.Binding(jkt, web.CertificateBinding(r))
	if err != nil {
		return idp.TokenSet{}, err
	}

	if kind != idp.GrantCode && kind != idp.GrantRefresh { // the transactions of these two grants store the uses
		if err := uses.Store(r.Context()); err != nil {
			return idp.TokenSet{}, err
		}
	}
	return grant(r, c, proven{binding, uses})
}

// provenKey returns the thumbprint of the key whose possession r proves. It returns "" if r has no
// DPoP proof (RFC 9449, section 5). It adds the use of the proof to uses, not to the session store.
// The token and PAR endpoints treat all proofs in this way, for every grant and client.
func (s *server) provenKey(r *http.Request, uses *idp.Uses) (string, error) {
	proofs := dpop.Proofs(r)
	if len(proofs) == 0 {
		return "", nil
	}
	p, err := s.proofs.Check(proofs, dpop.Use{Method: r.Method, Path: r.URL.Path})
	if err != nil {
		return "", err
	}
	uses.Add(idp.Use{Hash: "dpop:" + p.ID, Made: p.Made, Expires: p.Expires, Refusal: dpop.ErrUsed})
	return p.Thumbprint, nil
}

// grantCode serves grant_type=authorization_code (RFC 6749, section 4.1.3).
func (s *server) grantCode(r *http.Request, c idp.Client, p proven) (idp.TokenSet, error) {
	code, err := required(r, "code")
	if err != nil {
		return idp.TokenSet{}, err
	}
	return s.Codes.Redeem(r.Context(), c, idp.Redemption{
		Code:        code,
		RedirectURI: r.Form.Get("redirect_uri"),
		Verifier:    r.Form.Get("code_verifier"),
		Resources:   r.Form["resource"],
		Binding:     p.binding,
		Uses:        p.uses,
	})
}

// grantRefresh serves grant_type=refresh_token (RFC 6749, section 6).
func (s *server) grantRefresh(r *http.Request, c idp.Client, p proven) (idp.TokenSet, error) {
	token, err := required(r, "refresh_token")
	if err != nil {
		return idp.TokenSet{}, err
	}
	return s.Grants.Refresh(r.Context(), c, idp.Refreshing{
		Token:     token,
		Scope:     r.Form.Get("scope"),
		Resources: r.Form["resource"],
		Binding:   p.binding,
		Uses:      p.uses,
	})
}

// grantClient serves grant_type=client_credentials (RFC 6749, section 4.4).
func (s *server) grantClient(r *http.Request, c idp.Client, p proven) (idp.TokenSet, error) {
	if c.AuthMethod == idp.AuthNone {
		return idp.TokenSet{}, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "invalid_client",
			Message: "client must be authenticated",
		}
	}
	return s.Tokens.ClientCredentials(r.Context(), c, r.Form.Get("scope"), r.Form["resource"], p.binding)
}

// grantDevice serves grant_type=urn:ietf:params:oauth:grant-type:device_code (RFC 8628,
// section 3.4).
func (s *server) grantDevice(r *http.Request, c idp.Client, p proven) (idp.TokenSet, error) {
	code, err := required(r, "device_code")
	if err != nil {
		return idp.TokenSet{}, err
	}
	return s.Devices.Redeem(r.Context(), c, code, r.Form["resource"], p.binding)
}

func required(r *http.Request, name string) (string, error) {
	value := r.Form.Get(name)
	if value == "" {
		return "", &problem.Error{Kind: problem.Invalid, Code: "invalid_request", Message: name + " missing"}
	}
	return value, nil
}

// dpopType is the token_type of access tokens that are bound to a key (RFC 9449, section 5).
const dpopType = "DPoP"

// tokens is the response defined in RFC 6749, section 5.1.
type tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	RefreshToken string `json:"refresh_token,omitempty"`
	ExpiresIn    int64  `json:"expires_in"` // in seconds
	IDToken      string `json:"id_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
}

func tokensOf(set idp.TokenSet) tokens {
	kind := oidc.BearerToken
	if set.Bound {
		kind = dpopType
	}
	return tokens{
		AccessToken:  set.AccessToken,
		TokenType:    kind,
		RefreshToken: set.RefreshToken,
		ExpiresIn:    int64(set.ExpiresIn / time.Second),
		IDToken:      set.IDToken,
		Scope:        strings.Join(set.Scope, " "),
	}
}
