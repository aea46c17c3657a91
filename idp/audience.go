package idp

import (
	"net/url"
	"slices"
	"strings"
)

// audience returns the audience of a token: the requested resource, or the issuer if no resource is
// requested (RFC 8707, section 2; RFC 9068, section 3). A token has a single audience. A resource
// that receives the token therefore cannot use it at another resource.
func (co *core) audience(c Client, asked []string) (string, error) {
	switch {
	case len(asked) == 0:
		return co.Issuer, nil
	case len(asked) > 1:
		return "", oauth("invalid_target", "a token is for one resource; request one at a time")
	case asked[0] != co.Issuer && !slices.Contains(c.Resources, asked[0]):
		return "", oauth("invalid_target", "this client is not registered for the resource")
	}
	return asked[0], nil
}

// parseResources returns the resources that an authorization request asks for. Each must be the
// issuer or registered for the client (RFC 8707, section 2.1).
func (rs *Requests) parseResources(c Client, asked []string) ([]string, error) {
	if len(asked) > maxScopes {
		return nil, oauth("invalid_target", "more than %d resources", maxScopes)
	}
	var resources []string
	for _, uri := range asked {
		if _, err := rs.audience(c, []string{uri}); err != nil {
			return nil, err
		}
		if !slices.Contains(resources, uri) {
			resources = append(resources, uri)
		}
	}
	return resources, nil
}

// grantedAudience returns the audience of an access token. It is the resource in asked, which must
// be in granted. If asked is empty, it is the only granted resource (RFC 8707, section 2.2).
func (co *core) grantedAudience(c Client, granted, asked []string) (string, error) {
	if len(granted) == 0 {
		granted = []string{co.Issuer}
	}
	if len(asked) == 0 {
		asked = granted
	}
	for _, uri := range asked {
		if !slices.Contains(granted, uri) {
			return "", oauth("invalid_target", "the resource was not granted")
		}
	}
	return co.audience(c, asked)
}

// checkResources applies RFC 8707, section 2 to a client's resources.
func (c *Client) checkResources(found *problems) {
	if len(c.Resources) > 0 && c.AccessToken != JWTToken {
		found.add("resource", "only a client whose access tokens are JWTs may have resources")
	}
	for _, uri := range c.Resources {
		u, err := url.Parse(uri)
		if err != nil || len(uri) > maxURI || !u.IsAbs() || u.Fragment != "" || u.User != nil ||
			!isASCII(uri) || strings.Contains(uri, " ") {
			found.add("resource", "%q is not an absolute URI without fragment or user", uri)
		}
	}
}
