package idp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The parameters of an authorization request may be the claims of a JWT that its client has signed
// (RFC 9101). The parameter request contains the JWT, or the parameter request_uri contains its URL.
// All other parameters except client_id are then ignored.

// maxObject is the maximum size of a request object.
const maxObject = 16 << 10

// maxObjectAge is the longest time for which a request object may be valid, if the client must sign
// its requests (FAPI 2.0 Message Signing, section 5.3.1).
const maxObjectAge = time.Hour

// A Source describes how the parameters of an authorization request arrived.
type Source struct {
	pushed string    // ID of the pushed request; may be ""
	until  time.Time // time at which the pushed request expires
	signed bool      // whether the parameters are the claims of a signed request object
}

// Resolve returns the parameters of an authorization request, and how they arrived. They come from
// the request object or pushed request to which v refers. If v refers to neither, the parameters
// are those in v. Parameters without a value are omitted (RFC 6749, section 3.1).
func (rs *Requests) Resolve(ctx context.Context, c Client, v url.Values) (url.Values, Source, error) {
	v = withValues(v)
	hasObject, hasReference := v.Has("request"), v.Has("request_uri")
	if !hasObject && !hasReference {
		return v, Source{}, nil
	}
	if hasObject && hasReference {
		return nil, Source{}, oauth("invalid_request", "request and request_uri exclude each other")
	}
	if len(v["request"]) > 1 || len(v["request_uri"]) > 1 {
		return nil, Source{}, oauth("invalid_request", "a parameter is repeated")
	}

	object := v.Get("request")
	if hasReference {
		reference := v.Get("request_uri")
		if strings.HasPrefix(reference, pushedPrefix) {
			return rs.findPushed(ctx, c, reference)
		}
		fetched, err := rs.fetchObject(ctx, c, reference)
		if err != nil {
			return nil, Source{}, err
		}
		object = fetched
	}

	resolved, err := rs.openObject(ctx, c, object)
	if err != nil {
		return nil, Source{}, err
	}
	return withValues(resolved), Source{signed: true}, nil
}

// withValues returns v without parameters that have no value. It keeps a repeated parameter even if its
// values are empty, because repetition is an error.
func withValues(v url.Values) url.Values {
	given := maps.Clone(v)
	maps.DeleteFunc(given, func(_ string, values []string) bool { return len(values) == 1 && values[0] == "" })
	return given
}

// fetchObject returns the request object at uri, which must be registered for the client. Otherwise
// anyone could make selvage send requests (RFC 9101, section 10.4).
func (rs *Requests) fetchObject(ctx context.Context, c Client, uri string) (string, error) {
	if len(c.RequestURIs) == 0 {
		return "", oauth("request_uri_not_supported", "this client has no registered request_uri")
	}
	if !slices.Contains(c.RequestURIs, uri) {
		return "", oauth("invalid_request_uri", "request_uri is not one of those registered for the client")
	}
	raw, err := rs.Fetch(ctx, withoutFragment(uri), maxObject)
	if err != nil {
		return "", fmt.Errorf("%w: %w", oauth("invalid_request_uri", "the request_uri could not be read"), err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// badObject returns the error for an invalid request object.
func badObject(format string, args ...any) error {
	return oauth("invalid_request_object", "the request object: "+format, args...)
}

// openObject returns the parameters in a request object. It returns an error unless the client has
// signed the object.
func (rs *Requests) openObject(ctx context.Context, c Client, raw string) (url.Values, error) {
	if len(raw) > maxObject {
		return nil, badObject("it is longer than %d bytes", maxObject)
	}
	if !c.hasKeys() {
		return nil, oauth("request_not_supported",
			"request objects must be signed with a key that is registered for the client")
	}
	token, err := jwt.ParseSigned(raw, assertionAlgorithms)
	if err != nil || len(token.Headers) != 1 {
		return nil, badObject("it is not a compact JWT signed by one of %s", strings.Join(c.signingAlgorithms(), ", "))
	}

	head := token.Headers[0]
	typ, _ := head.ExtraHeaders[jose.HeaderType].(string)
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	if !slices.Contains([]string{"", "jwt", "oauth-authz-req+jwt"}, typ) {
		return nil, badObject("its typ belongs to a different kind of JWT")
	}
	isRegistered := c.RequestObjectAlg == "" || head.Algorithm == c.RequestObjectAlg
	if !isRegistered || !slices.Contains(c.signingAlgorithms(), head.Algorithm) {
		return nil, badObject("its alg is not one that the client may use")
	}

	claims := make(map[string]any)
	err = rs.signers.verify(ctx, c, token, &claims)
	var reason unverified
	if errors.As(err, &reason) {
		return nil, badObject("%s", reason)
	}
	if err != nil {
		return nil, err
	}
	if err := c.checkObject(claims, rs.Issuer, rs.Now()); err != nil {
		return nil, err
	}
	return paramsOf(c, claims)
}

// checkObject checks the issuer, audience and lifetime of a request object. If the client must sign
// its requests, the object must contain all of these claims. checkObject also refuses client
// assertions, and objects that name another client or request.
func (c Client) checkObject(claims map[string]any, issuer string, now time.Time) error {
	if iss, present := claims["iss"]; (present || c.RequireObject) && iss != c.ID {
		return badObject("its iss must be %s", c.ID)
	}
	if clientID, present := claims["client_id"]; present && clientID != c.ID {
		return badObject("its client_id must be %s", c.ID)
	}
	if aud, present := claims["aud"]; (present || c.RequireObject) && !audienceContains(aud, issuer) {
		return badObject("its aud must be %s", issuer)
	}

	if claims["sub"] == c.ID { // a client assertion, which must not be used as a request (RFC 9101, section 10.8)
		return badObject("its sub must not be the client")
	}
	for _, name := range []string{"request", "request_uri"} {
		if _, present := claims[name]; present {
			return badObject("it must not contain %s", name)
		}
	}
	return c.checkObjectLifetime(claims, now)
}

// checkObjectLifetime checks the claims exp and nbf of a request object.
func (c Client) checkObjectLifetime(claims map[string]any, now time.Time) error {
	hasExpiry, hasStart := claims["exp"] != nil, claims["nbf"] != nil
	expires, notBefore := numericDate(claims["exp"]), numericDate(claims["nbf"])
	if hasExpiry && !now.Before(expires) || !hasExpiry && c.RequireObject {
		return badObject("it has expired, or its exp is missing")
	}
	if notBefore.After(now.Add(clientSkew)) || !hasStart && c.RequireObject {
		return badObject("its nbf is in the future or missing")
	}
	if c.RequireObject && (now.Sub(notBefore) > maxObjectAge || expires.Sub(notBefore) > maxObjectAge) {
		return badObject("it may be valid for %s at most", maxObjectAge)
	}
	return nil
}

// audienceContains reports whether audience is the string want, or a list that contains it.
func audienceContains(audience any, want string) bool {
	list, _ := audience.([]any)
	return audience == want || slices.Contains(list, any(want))
}

// numericDate returns the time of a NumericDate. For any other value, and for dates before 1970 or
// too far in the future, it returns the Unix epoch.
func numericDate(date any) time.Time {
	seconds, _ := date.(float64)
	if seconds < 0 || seconds > 1<<40 {
		seconds = 0
	}
	return time.Unix(int64(seconds), 0)
}

// paramsOf returns claims as request parameters, without the claims about the JWT itself. It omits
// unknown claims, and claims with the value null.
func paramsOf(c Client, claims map[string]any) (url.Values, error) {
	v := url.Values{"client_id": {c.ID}}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if name == "client_id" || !slices.Contains(requestParams, name) {
			continue
		}
		if claims[name] == nil {
			continue
		}

		values, isList := claims[name].([]any)
		if !isList {
			values = []any{claims[name]}
		}

		for _, value := range values {
			text, isText := value.(string)
			if !isText {
				raw, err := json.Marshal(value) // for example, max_age (a number) or claims (an object)
				if err != nil {
					return nil, badObject("its claim %s is invalid", name)
				}
				text = string(raw)
			}
			v.Add(name, text)
		}
	}
	return v, nil
}

// Unresolved returns the fields that the error response needs for a request whose object or
// reference is invalid. It may use the unverified content of the object, because the sender could
// have sent the same values as parameters.
func (rs *Requests) Unresolved(c Client, v url.Values) AuthRequest {
	v = withUnverified(withValues(v))
	req := AuthRequest{ClientID: c.ID, RedirectURI: v.Get("redirect_uri"), State: v.Get("state")}
	_ = req.parseResponseMode(v) // after an error, the default mode is set
	return req
}

// withUnverified adds the state and response_mode in the request object to the parameters v, unless v
// itself contains them. The client then receives the error in the mode that it expects. The object
// need not be verified.
func withUnverified(v url.Values) url.Values {
	parts := strings.Split(v.Get("request"), ".")
	if len(parts) != 3 {
		return v
	}

	var object struct {
		State string `json:"state"`
		Mode  string `json:"response_mode"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &object) != nil || len(object.State) > maxState {
		return v
	}

	withState := maps.Clone(v)
	if object.State != "" && !v.Has("state") {
		withState.Set("state", object.State)
	}
	if object.Mode == "" || v.Has("response_mode") {
		return withState
	}

	// An invalid mode is ignored.
	withMode := maps.Clone(withState)
	withMode.Set("response_mode", object.Mode)
	var parsed AuthRequest
	if parsed.parseResponseMode(withMode) != nil {
		return withState
	}
	return withMode
}
