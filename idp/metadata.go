package idp

import (
	"encoding/json"

	"github.com/selvage/selvage/keys"
)

// Metadata is what only some clients have, under the names of their registration
// (RFC 7591, section 2; OpenID Connect Dynamic Client Registration, section 2).
// The zero value means none of it.
type Metadata struct {
	ResponseTypes []string        `json:"response_types,omitempty"` // none means code alone
	JWKS          json.RawMessage `json:"jwks,omitempty"`           // public keys by value (RFC 7517, section 5), or
	JWKSURI       string          `json:"jwks_uri,omitempty"`       // where they are
	SubjectType   SubjectType     `json:"subject_type,omitempty"`   // "" means public
	SectorURI     string          `json:"sector_identifier_uri,omitempty"`
	UserinfoAlg   keys.Use        `json:"userinfo_signed_response_alg,omitempty"` // "" means plain JSON
	Resources     []string        `json:"resources,omitempty"`                    // that it may ask tokens for (RFC 8707)
	RequireACR    string          `json:"require_acr,omitempty"`                  // the class that each login for it must have; "" means any

	BrandColor string `json:"brand_color,omitempty"` // of buttons and links where it is signed in to, "#rrggbb"; "" is the project's
	TermsURI   string `json:"tos_uri,omitempty"`     // shown there
	PolicyURI  string `json:"policy_uri,omitempty"`  // of its privacy policy, likewise

	BackchannelLogoutURI     string `json:"backchannel_logout_uri,omitempty"`
	BackchannelLogoutSession bool   `json:"backchannel_logout_session_required,omitempty"` // logout tokens must name the login
}

// A SubjectType says whether a subscriber is the same to all clients (OpenID
// Connect Core, section 8).
type SubjectType string

// The types. A pairwise subject differs from sector to sector.
const (
	Public   SubjectType = "public"
	Pairwise SubjectType = "pairwise"
)
