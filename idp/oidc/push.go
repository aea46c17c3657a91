package oidc

import (
	"net/http"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/web"
)

// push serves POST /oauth/par (RFC 9126, section 2).
func (s *server) push(w http.ResponseWriter, r *http.Request, cc *op.ClientCredentials) {
	answer, err := s.pushed(r, cc)
	if err != nil {
		op.WriteError(w, r, s.status(r.Context(), err), nil)
		return
	}
	if err := web.JSON(w, http.StatusCreated, answer); err != nil {
		web.LogInternal(r, s.log, err)
	}
}

// pushed authenticates the client and stores its request.
func (s *server) pushed(r *http.Request, cc *op.ClientCredentials) (pushResponse, error) {
	uses := s.Assertions.Uses()
	c, err := s.authenticate(r.Context(), r.Header, web.Certificates(r), cc, uses)
	if err != nil {
		return pushResponse{}, err
	}
	audit.As(r.Context(), audit.Client, c.ID)

	r.Form.Set("client_id", c.ID) // only an assertion or a header may have named the client
	jkt, proofErr := s.provenKey(r, uses)
	if err := uses.Store(r.Context()); err != nil { // a refused request also uses up its assertion
		return pushResponse{}, err
	}
	if proofErr != nil {
		return pushResponse{}, proofErr
	}
	uri, life, err := s.Requests.Push(r.Context(), c, r.Form, jkt)
	if err != nil {
		return pushResponse{}, err
	}
	return pushResponse{RequestURI: uri, ExpiresIn: int64(life / time.Second)}, nil
}

// pushResponse is the response defined in RFC 9126, section 2.2.
type pushResponse struct {
	RequestURI string `json:"request_uri"`
	ExpiresIn  int64  `json:"expires_in"` // in seconds
}
