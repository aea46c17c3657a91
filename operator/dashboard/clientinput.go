package dashboard

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// clientOf returns c with the settings of a form. If the form names no authentication method or
// token format, an existing client keeps its own.
func clientOf(posted url.Values, c idp.Client) idp.Client {
	text := func(name string) string { return strings.TrimSpace(posted.Get(name)) }
	if c.ID == "" {
		c.Type = idp.ClientType(text("type"))
	}
	c.Name = text("name")
	c.FirstParty = text("first_party") != ""
	c.RedirectURIs = splitLines(posted.Get("redirect_uri"))
	c.LogoutURIs = splitLines(posted.Get("post_logout_redirect_uri"))

	c.Scopes = posted["scope"]
	c.Grants = posted["grant"]
	c.Profile = idp.Profile(text("profile"))
	c.IDTokenAlg = keys.Use(text("id_token_alg"))
	c.PKCEOptional = text("pkce") == "optional"
	if method := idp.AuthMethod(text("auth_method")); method != "" || c.ID == "" {
		c.AuthMethod = method
	}
	if format := idp.TokenFormat(text("access_token")); format != "" || c.ID == "" {
		c.AccessToken = format
	}
	c.JWKS = nil
	if set := text("jwks"); set != "" {
		c.JWKS = keySet(set)
	}

	c.JWKSURI = text("jwks_uri")
	c.DPoPBound = text("dpop_bound_access_tokens") != ""
	c.CertificateBound = text("tls_client_certificate_bound_access_tokens") != ""
	c.CertificateSubject = idp.CertificateSubject{
		DN:    text("tls_client_auth_subject_dn"),
		DNS:   text("tls_client_auth_san_dns"),
		URI:   text("tls_client_auth_san_uri"),
		IP:    text("tls_client_auth_san_ip"),
		Email: text("tls_client_auth_san_email"),
	}
	c.RequirePushed = slices.Contains([]string{requestsPushed, requestsBoth}, text("requests"))
	c.RequireObject = slices.Contains([]string{requestsSigned, requestsBoth}, text("requests"))
	c.RequestURIs = splitLines(posted.Get("request_uri"))
	c.RequireACR = text("acr")
	c.BackchannelLogoutURI = text("backchannel_logout_uri")
	c.FrontchannelLogoutURI = text("frontchannel_logout_uri")
	return c
}

// keySet returns typed JSON without white space. It turns any other text into a JSON string, which
// validation rejects because it is not a set of keys.
func keySet(typed string) json.RawMessage {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(typed)) == nil {
		return compact.Bytes()
	}
	raw, _ := json.Marshal(typed) // cannot fail: every string can be encoded
	return raw
}

// maxKeySet is the maximum length of a client's set of public keys in bytes.
const maxKeySet = 16 << 10
