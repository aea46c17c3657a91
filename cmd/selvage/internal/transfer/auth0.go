package transfer

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/password"
)

// Auth0 reads files with users, password hashes and clients, in any order. A user export job writes
// the users, Auth0's support sends the hashes, and the Management API lists the clients. The ID of
// a user in Auth0 becomes the reference of the subscriber. Clients keep their IDs.
func Auth0(files ...io.Reader) (*Foreign, error) {
	f, u := &Foreign{}, make(unmapped)
	a := auth0{
		f:      f,
		u:      u,
		users:  make(map[string]*Subscriber),
		hashes: make(map[string]string),
	}
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if err := a.add(o); err != nil {
				return nil, err
			}
		}
	}

	for id, hash := range a.hashes {
		if s := a.users[id]; s != nil {
			s.PasswordHash = hash
		} else {
			u.add("hashes", id, "the files have no user with this id")
		}
	}
	f.Unmapped = u.list()
	return f, nil
}

// An auth0 collects the records of several files.
type auth0 struct {
	f      *Foreign
	u      unmapped
	users  map[string]*Subscriber // subscribers by user ID
	hashes map[string]string      // hashes by user ID
}

// add adds a user, a hash, a client, or an object with lists of users and clients.
func (a *auth0) add(o object) error {
	switch {
	case o["passwordHash"] != nil && o["_id"] != nil:
		a.hash(o)
	case o["client_id"] != nil:
		a.client(o)
	case o["user_id"] != nil || o["Id"] != nil || o["email"] != nil:
		a.user(o)
	case o["users"] != nil || o["clients"] != nil:
		var users, clients []object
		o.take("users", &users)
		o.take("clients", &clients)
		for _, item := range slices.Concat(users, clients) {
			if err := a.add(item); err != nil {
				return err
			}
		}
	default:
		return errors.New("this is neither a user, a password hash nor a client of Auth0")
	}
	return nil
}

// hash reads a line of the file with hashes. A line identifies the user by the ID within a database
// connection. If that user has not been read yet and the line has an email address, hash also adds
// the user.
func (a *auth0) hash(o object) {
	var id struct {
		OID string `json:"$oid"`
	}
	o.take("_id", &id)
	user := "auth0|" + cmp.Or(o.text("alt_id"), id.OID)
	hash := o.text("passwordHash")
	if err := password.CheckHash("password", hash); err != nil {
		a.u.add("hashes.passwordHash", user, err.Error())
		return
	}
	a.hashes[user] = hash

	s := &Subscriber{
		Kind:          kindSubscriber,
		Reference:     user,
		Email:         o.text("email"),
		EmailVerified: o.flag("email_verified"),
	}
	var identifiers []struct {
		Type, Value string
		Verified    bool
	}
	o.take("identifiers", &identifiers)
	for _, identifier := range identifiers {
		if identifier.Type == "email" && s.Email == "" {
			s.Email, s.EmailVerified = identifier.Value, identifier.Verified
		}
	}

	if a.users[user] == nil && s.Email != "" {
		a.addUser(user, s)
	}
}

// addUser adds a user. If hash has already added the user, addUser replaces that user's data.
func (a *auth0) addUser(id string, s *Subscriber) {
	if old := a.users[id]; old != nil && id != "" {
		*old = *s
		return
	}
	a.users[id] = s
	a.f.Subscribers = append(a.f.Subscribers, s)
}

// user reads a user.
func (a *auth0) user(o object) {
	id := cmp.Or(o.text("user_id"), o.text("Id"))
	s := &Subscriber{
		Kind:          kindSubscriber,
		Reference:     id,
		Email:         o.text("email"),
		EmailVerified: o.flag("email_verified"),
		Person:        fabric.Person{FirstName: o.text("given_name"), LastName: o.text("family_name")},
		Disabled:      o.flag("blocked"),
	}
	name := cmp.Or(s.Email, id)
	fullName := strings.TrimSpace(s.FirstName + " " + s.LastName)
	if shown := o.text("name"); shown != s.Email && shown != fullName {
		s.DisplayName = shown
	}

	claims := fabric.StandardClaims{
		Nickname:          o.text("nickname"),
		Picture:           o.text("picture"),
		PreferredUsername: o.text("username"),
		PhoneNumber:       o.text("phone_number"),
		Locale:            o.text("locale"),
	}
	if verified := o.flag("phone_verified"); verified && claims.PhoneNumber != "" {
		claims.PhoneNumberVerified = &verified
	}
	if claims != (fabric.StandardClaims{}) {
		s.Claims = &claims
	}

	if created, err := time.Parse(time.RFC3339, o.text("created_at")); err == nil {
		s.Created = created
	}

	a.importedHash(o, s, name)
	var identities []struct {
		Provider string
		IsSocial bool
	}
	o.take("identities", &identities)
	for _, identity := range identities {
		ofAuth0 := identity.Provider == "auth0" || identity.Provider == ""
		if identity.IsSocial || !ofAuth0 {
			a.u.add("users.identities."+identity.Provider, name, "people link the other account at their next sign-in")
		}
	}
	o.ignore("updated_at", "last_login", "last_ip", "logins_count", "last_password_reset", "_id")
	o.rest(a.u, "users", name)
	a.addUser(id, s)
}

// importedHash reads a hash in the form that Auth0 imports.
func (a *auth0) importedHash(o object, s *Subscriber, name string) {
	hash := o.text("password_hash")
	var custom struct {
		Algorithm string
		Hash      struct{ Value, Encoding string }
	}
	if o.take("custom_password_hash", &custom); custom.Hash.Value != "" {
		hash = custom.Hash.Value
		// Auth0 accepts PBKDF2 hashes in the PHC form, with the parameters "i=" and "l=".
		if custom.Algorithm == "pbkdf2" && !strings.HasPrefix(hash, "$") {
			hash = "$" + hash
		}
	}
	if hash == "" {
		return
	}

	if err := password.CheckHash("password", hash); err != nil {
		a.u.add("users.password_hash", name, err.Error())
		return
	}
	s.PasswordHash = hash
}

// auth0Types maps the types of clients in Auth0 to types in selvage.
var auth0Types = map[string]idp.ClientType{
	"spa":             idp.SPA,
	"native":          idp.Native,
	"regular_web":     idp.Web,
	"non_interactive": idp.Service,
}

// auth0Grants maps the names of grants in Auth0 to names in selvage. Other grants are not
// supported.
var auth0Grants = map[string]string{
	"authorization_code": idp.GrantCode,
	"refresh_token":      idp.GrantRefresh,
	"client_credentials": idp.GrantClientCredentials,
	idp.GrantDevice:      idp.GrantDevice,
}

// client reads a client.
func (a *auth0) client(o object) {
	c := &Client{
		Kind:        kindClient,
		ID:          o.text("client_id"),
		Name:        o.text("name"),
		AccessToken: idp.JWTToken,
		FirstParty:  true,
	}
	c.InitiateLoginURI = o.text("initiate_login_uri")
	if o.flag("global") {
		return // the tenant's own client
	}

	o.take("is_first_party", &c.FirstParty)
	kind := o.text("app_type")
	c.Type = cmp.Or(auth0Types[kind], idp.Web)
	if auth0Types[kind] == "" && kind != "" {
		a.u.add("clients.app_type."+kind, c.ID, "imported as a web client")
	}
	o.take("callbacks", &c.RedirectURIs)
	o.take("allowed_logout_urls", &c.LogoutURIs)

	a.grants(o, c)
	a.authentication(o, c)
	a.otherSettings(o, c)
	a.f.Clients = append(a.f.Clients, c)
}

// grants reads the grants of a client.
func (a *auth0) grants(o object, c *Client) {
	var grants []string
	o.take("grant_types", &grants)
	for _, g := range grants {
		if known := auth0Grants[g]; known != "" {
			c.Grants = append(c.Grants, known)
		} else {
			a.u.add("clients.grant_types."+g, c.ID, "")
		}
	}
}

// authentication reads how a client authenticates, and its secret.
func (a *auth0) authentication(o object, c *Client) {
	method := o.text("token_endpoint_auth_method")
	switch method {
	case "none":
		c.AuthMethod = idp.AuthNone
	case "client_secret_post":
		c.AuthMethod = idp.AuthPost
	case "client_secret_basic":
		c.AuthMethod = idp.AuthBasic
	case "":
	default:
		a.u.add("clients.token_endpoint_auth_method."+method, c.ID, "")
	}

	public := c.AuthMethod == idp.AuthNone
	if c.AuthMethod == "" {
		public = c.Type == idp.SPA || c.Type == idp.Native
	}
	if secret := o.text("client_secret"); secret != "" && !public {
		c.SecretHash = idp.ImportedSecret(secret)
	}
	c.PKCEOptional = !public && c.Type == idp.Web
}

// otherSettings reads more settings of a client, and reports the remaining ones.
func (a *auth0) otherSettings(o object, c *Client) {
	var logout struct {
		URLs []string `json:"backchannel_logout_urls"`
	}
	if o.take("oidc_logout", &logout); len(logout.URLs) > 0 {
		c.BackchannelLogoutURI = logout.URLs[0]
	}
	var jwt struct{ Alg string }
	if o.take("jwt_configuration", &jwt); jwt.Alg == "HS256" {
		a.u.add("clients.jwt_configuration.alg", c.ID, "ID tokens are signed with RS256 instead of HS256")
	} else if jwt.Alg != "" {
		c.IDTokenAlg = jwt.Alg
	}

	var metadata map[string]json.RawMessage
	if o.take("client_metadata", &metadata); len(metadata) > 0 {
		a.u.add("clients.client_metadata", c.ID, "")
	}
	o.ignore("tenant", "description", "signing_keys", "logo_uri", "oidc_conformant", "sso", "sso_disabled",
		"cross_origin_auth", "cross_origin_authentication", "cross_origin_loc", "custom_login_page",
		"custom_login_page_on", "custom_login_page_preview", "form_template", "web_origins", "allowed_origins",
		"refresh_token", "encryption_key", "native_social_login", "client_secret")
	o.rest(a.u, "clients", c.ID)
}
