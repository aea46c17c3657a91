package transfer

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/password"
)

// Keycloak reads files that `kc.sh export` or the admin console wrote. They contain realms, or
// parts of realms with users. People and clients keep their IDs, so the subjects in tokens stay the
// same.
func Keycloak(files ...io.Reader) (*Foreign, error) {
	f, u := &Foreign{}, make(unmapped)
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			return nil, err
		}
		for _, realm := range objects {
			if realm["realm"] == nil || realm["users"] == nil && realm["clients"] == nil {
				return nil, fmt.Errorf("this is not a Keycloak realm with users or clients")
			}
			f.keycloakRealm(realm, u)
		}
	}
	f.Unmapped = u.list()
	return f, nil
}

func (f *Foreign) keycloakRealm(realm object, u unmapped) {
	name := realm.text("realm")
	var users, clients []object
	realm.take("users", &users)
	realm.take("clients", &clients)

	for _, user := range users {
		if s := keycloakUser(user, u); s != nil {
			f.Subscribers = append(f.Subscribers, s)
		}
	}
	for _, client := range clients {
		if c := keycloakClient(client, u); c != nil {
			f.Clients = append(f.Clients, c)
		}
	}

	// Every export contains many settings of the realm. Report only the members on which people or
	// apps depend.
	for _, part := range []string{"groups", "identityProviders", "clientScopes", "organizations", "federatedUsers"} {
		var some []json.RawMessage
		realm.take(part, &some)
		for range some {
			u.add("realm."+part, name, "")
		}
	}
}

// keycloakUser returns a subscriber, or nil for a service account.
func keycloakUser(o object, u unmapped) *Subscriber {
	name := o.text("username")
	s := &Subscriber{
		Kind:          kindSubscriber,
		ID:            o.text("id"),
		Email:         o.text("email"),
		EmailVerified: o.flag("emailVerified"),
		Person:        fabric.Person{FirstName: o.text("firstName"), LastName: o.text("lastName")},
	}
	if o.text("serviceAccountClientId") != "" {
		return nil // a client with client_credentials needs no user
	}
	if s.Email == "" && strings.Contains(name, "@") {
		s.Email = name
	}
	if fabric.NormalizeEmail(name) != fabric.NormalizeEmail(s.Email) {
		s.Reference = name
		s.Claims = &fabric.StandardClaims{PreferredUsername: name}
	}

	if _, err := uuid.Parse(s.ID); err != nil {
		s.ID = ""
	}

	enabled := true
	o.take("enabled", &enabled)
	s.Disabled = !enabled
	var created int64
	if o.take("createdTimestamp", &created); created > 0 {
		s.Created = time.UnixMilli(created).UTC()
	}

	keycloakCredentials(o, s, name, u)
	keycloakAttributes(o, s, name, u)
	o.ignore("origin", "self", "notBefore", "disableableCredentialTypes", "totp", "access")
	var roles []string
	o.take("realmRoles", &roles)
	if slices.ContainsFunc(roles, func(r string) bool {
		return !strings.HasPrefix(r, "default-roles-") && r != "offline_access" && r != "uma_authorization"
	}) {
		u.add("users.realmRoles", name, "selvage has scopes of clients instead of roles")
	}
	o.rest(u, "users", name)
	return s
}

// keycloakAttributes reads the attributes that are claims or members of the profile.
func keycloakAttributes(o object, s *Subscriber, name string, u unmapped) {
	var attributes map[string][]string
	o.take("attributes", &attributes)
	claims := fabric.StandardClaims{}
	if s.Claims != nil {
		claims = *s.Claims
	}

	places := map[string]*string{"phoneNumber": &claims.PhoneNumber, "phone_number": &claims.PhoneNumber,
		"locale": &claims.Locale, "picture": &claims.Picture, "website": &claims.Website,
		"birthdate": &claims.Birthdate, "gender": &claims.Gender, "nickname": &claims.Nickname,
		"middleName": &claims.MiddleName, "zoneinfo": &s.TimeZone, "company": &s.CompanyName,
		"country": &s.Country, "region": &s.Region, "jobTitle": &s.JobTitle, "displayName": &s.DisplayName}
	for _, attribute := range slices.Sorted(maps.Keys(attributes)) { // phone_number takes precedence over phoneNumber
		values := attributes[attribute]
		if to := places[attribute]; to != nil && len(values) == 1 {
			*to = values[0]
		} else if len(values) > 0 {
			u.add("users.attributes."+attribute, name, "")
		}
	}

	if claims != (fabric.StandardClaims{}) {
		s.Claims = &claims
	}
}

// A keycloakCredential is a credential of a user, in the form that Keycloak 8 and newer versions
// use.
type keycloakCredential struct {
	Type           string `json:"type"`
	SecretData     string `json:"secretData"`
	CredentialData string `json:"credentialData"`
}

// keycloakCredentials reads the password of a user.
func keycloakCredentials(o object, s *Subscriber, name string, u unmapped) {
	var credentials []keycloakCredential
	o.take("credentials", &credentials)
	for _, c := range credentials {
		switch {
		case c.Type != "password":
			u.add("users.credentials."+c.Type, name, "people add a second factor or passkey again")
		case s.PasswordHash != "":
			u.add("users.credentials.password", name, "a user has several")
		default:
			hash, err := c.hash()
			if err == nil {
				err = password.CheckHash("password", hash)
			}
			if err != nil {
				u.add("users.credentials.password", name, err.Error())
				continue
			}
			s.PasswordHash = hash
		}
	}
}

// hash returns the hash of a password in the form that package password reads.
func (c keycloakCredential) hash() (string, error) {
	var secret struct{ Value, Salt string }
	var data struct {
		HashIterations       int
		Algorithm            string
		AdditionalParameters map[string][]string
	}
	if json.Unmarshal([]byte(c.SecretData), &secret) != nil || json.Unmarshal([]byte(c.CredentialData), &data) != nil {
		return "", fmt.Errorf("the password has no hash")
	}

	salt, key := strings.TrimRight(secret.Salt, "="), strings.TrimRight(secret.Value, "=")
	parameter := func(name string) string {
		if values := data.AdditionalParameters[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}

	switch {
	case data.Algorithm == "pbkdf2":
		return fmt.Sprintf("$pbkdf2$%d$%s$%s", data.HashIterations, salt, key), nil
	case strings.HasPrefix(data.Algorithm, "pbkdf2-"):
		return fmt.Sprintf("$%s$%d$%s$%s", data.Algorithm, data.HashIterations, salt, key), nil
	case data.Algorithm == "argon2" && parameter("type") == "id" && parameter("version") == "1.3":
		return fmt.Sprintf("$argon2id$v=19$m=%s,t=%d,p=%s$%s$%s", parameter("memory"), data.HashIterations,
			parameter("parallelism"), salt, key), nil
	case data.Algorithm == "bcrypt":
		return secret.Value, nil
	}
	return "", fmt.Errorf("the algorithm %q is unknown", data.Algorithm)
}

// keycloakBuiltIn are the clients that every realm has.
var keycloakBuiltIn = []string{"account", "account-console", "admin-cli", "broker", "realm-management",
	"security-admin-console", "master-realm"}

// keycloakClient returns a client. It returns nil for a built-in client, or for a client that
// selvage cannot store.
func keycloakClient(o object, u unmapped) *Client {
	id := o.text("clientId")
	if slices.Contains(keycloakBuiltIn, id) {
		return nil
	}
	if protocol := o.text("protocol"); protocol != "" && protocol != "openid-connect" {
		u.add("clients", id, "only OpenID Connect clients are imported")
		return nil
	}
	enabled := true
	if o.take("enabled", &enabled); !enabled || o.flag("bearerOnly") {
		u.add("clients", id, "disabled and bearer-only clients are not imported")
		return nil
	}

	c := &Client{Kind: kindClient, ID: id, Name: o.text("name"), Type: idp.Web, AccessToken: idp.JWTToken}
	if strings.HasPrefix(c.Name, "${") { // the name is a message key
		c.Name = ""
	}
	keycloakGrants(o, c, u)
	keycloakURIs(o, c, u)
	secret := o.text("secret")
	switch method := o.text("clientAuthenticatorType"); {
	case c.AuthMethod == idp.AuthNone:
	case method == "client-jwt":
		c.AuthMethod = idp.AuthPrivateKeyJWT
	case secret != "" && strings.Trim(secret, "*") != "": // the console masks secrets
		c.SecretHash = idp.ImportedSecret(secret)
	}

	consent := o.flag("consentRequired")
	c.FirstParty = !consent
	o.ignore("id", "rootUrl", "adminUrl", "baseUrl", "webOrigins", "surrogateAuthRequired", "notBefore",
		"alwaysDisplayInConsole", "nodeReRegistrationTimeout", "fullScopeAllowed", "defaultClientScopes",
		"optionalClientScopes", "access", "description", "registrationAccessToken")
	o.rest(u, "clients", id)
	return c
}

// keycloakGrants reads the flows that a client may use.
func keycloakGrants(o object, c *Client, u unmapped) {
	code := true
	o.take("standardFlowEnabled", &code)
	service := o.flag("serviceAccountsEnabled")
	if o.flag("publicClient") {
		c.Type, c.AuthMethod = idp.SPA, idp.AuthNone
	}
	if code {
		c.Grants = append(c.Grants, idp.GrantCode, idp.GrantRefresh)
	}
	if service {
		c.Grants = append(c.Grants, idp.GrantClientCredentials)
		if !code {
			c.Type = idp.Service
		}
	}
	if o.flag("implicitFlowEnabled") {
		u.add("clients.implicitFlowEnabled", c.ID, "apps should use the authorization code")
	}
	if o.flag("directAccessGrantsEnabled") {
		u.add("clients.directAccessGrantsEnabled", c.ID, "apps never see passwords here")
	}
}

// keycloakURIs reads the redirect URIs and the attributes of a client.
func keycloakURIs(o object, c *Client, u unmapped) {
	root := o.text("rootUrl")
	var uris []string
	o.take("redirectUris", &uris)
	for _, uri := range uris {
		if strings.HasPrefix(uri, "/") && root != "" {
			uri = strings.TrimSuffix(root, "/") + uri
		}
		if strings.Contains(uri, "*") {
			u.add("clients.redirectUris", c.ID, "wildcards are not allowed; name each URI: "+uri)
			continue
		}
		c.RedirectURIs = append(c.RedirectURIs, uri)
		if scheme, _, _ := strings.Cut(uri, ":"); strings.Contains(scheme, ".") {
			c.Type = idp.Native
		}
	}

	var attributes object
	o.take("attributes", &attributes)
	if attributes.text("oauth2.device.authorization.grant.enabled") == "true" {
		c.Grants = append(c.Grants, idp.GrantDevice)
	}

	for uri := range strings.SplitSeq(attributes.text("post.logout.redirect.uris"), "##") {
		switch {
		case uri == "", uri == "-":
		case uri == "+":
			c.LogoutURIs = append(c.LogoutURIs, c.RedirectURIs...)
		case strings.Contains(uri, "*"):
			u.add("clients.attributes.post.logout.redirect.uris", c.ID, "wildcards are not allowed: "+uri)
		default:
			c.LogoutURIs = append(c.LogoutURIs, uri)
		}
	}

	c.BackchannelLogoutURI = attributes.text("backchannel.logout.url")
	c.BackchannelLogoutSession = attributes.text("backchannel.logout.session.required") == "true" &&
		c.BackchannelLogoutURI != ""
	if front := attributes.text("frontchannel.logout.url"); o.flag("frontchannelLogout") {
		c.FrontchannelLogoutURI = front
	}

	c.JWKSURI = attributes.text("jwks.url")
	if alg := attributes.text("id.token.signed.response.alg"); alg != "" && alg != "any" {
		c.IDTokenAlg = alg
	}
	if c.AuthMethod != idp.AuthNone && attributes.text("pkce.code.challenge.method") == "" {
		c.PKCEOptional = true
	}
	keepAttributes(attributes, c.ID, u)
}

// keepAttributes reports the attributes that affect the permissions of a client.
func keepAttributes(attributes object, id string, u unmapped) {
	for name, raw := range attributes {
		var value string
		if json.Unmarshal(raw, &value) != nil || value == "" || value == "false" {
			continue
		}
		for _, prefix := range []string{"access.token.lifespan", "saml", "tls.client", "x509.", "dpop.bound",
			"request.object", "client.session", "client.offline", "acr.loa", "default.acr"} {
			if strings.HasPrefix(name, prefix) {
				u.add("clients.attributes."+name, id, "")
			}
		}
	}
}
