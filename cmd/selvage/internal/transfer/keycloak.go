package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/password"
)

// Keycloak reads files that `kc.sh export` or the admin console wrote. They contain whole realms, or
// parts of realms with users or clients. People and clients keep their IDs, so the subjects in tokens
// stay the same.
func Keycloak(files ...io.Reader) (*Foreign, error) {
	f, u := &Foreign{}, make(unmapped)
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			return nil, err
		}
		for _, realm := range objects {
			hasRecords := realm["users"] != nil || realm["clients"] != nil
			if realm["realm"] == nil || !hasRecords {
				return nil, errors.New("this is not a Keycloak realm with users or clients")
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
		var entries []json.RawMessage
		realm.take(part, &entries)
		for range entries {
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
	if slices.ContainsFunc(roles, isCustomRole) {
		u.add("users.realmRoles", name, "selvage has scopes of clients instead of roles")
	}
	o.rest(u, "users", name)
	return s
}

// isCustomRole reports whether a role was defined by users of Keycloak. Keycloak gives its own roles to
// everyone.
func isCustomRole(role string) bool {
	return !strings.HasPrefix(role, "default-roles-") && role != "offline_access" && role != "uma_authorization"
}

// keycloakAttributes reads the attributes that are claims or members of the profile.
func keycloakAttributes(o object, s *Subscriber, name string, u unmapped) {
	var attributes map[string][]string
	o.take("attributes", &attributes)
	claims := fabric.StandardClaims{}
	if s.Claims != nil {
		claims = *s.Claims
	}

	fields := map[string]*string{
		"birthdate":    &claims.Birthdate,
		"gender":       &claims.Gender,
		"locale":       &claims.Locale,
		"middleName":   &claims.MiddleName,
		"nickname":     &claims.Nickname,
		"phoneNumber":  &claims.PhoneNumber,
		"phone_number": &claims.PhoneNumber,
		"picture":      &claims.Picture,
		"website":      &claims.Website,

		"company":     &s.CompanyName,
		"country":     &s.Country,
		"displayName": &s.DisplayName,
		"jobTitle":    &s.JobTitle,
		"region":      &s.Region,
		"zoneinfo":    &s.TimeZone,
	}
	// The order matters: phone_number takes precedence over phoneNumber.
	for _, attribute := range slices.Sorted(maps.Keys(attributes)) {
		values := attributes[attribute]
		field := fields[attribute]
		if field != nil && len(values) == 1 {
			*field = values[0]
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
			u.add("users.credentials."+c.Type, name, "people must add a second factor or passkey again")
		case s.PasswordHash != "":
			u.add("users.credentials.password", name, "a user has several passwords")
		default:
			hash, err := c.hash()
			if err != nil {
				u.add("users.credentials.password", name, err.Error())
				continue
			}
			s.PasswordHash = hash
		}
	}
}

// hash returns the hash of a password in the form that package password reads, and checks it.
func (c keycloakCredential) hash() (string, error) {
	hash, err := c.convert()
	if err != nil {
		return "", err
	}
	return hash, password.CheckHash("password", hash)
}

// convert returns the hash of a password in the form that package password reads.
func (c keycloakCredential) convert() (string, error) {
	var secret struct{ Value, Salt string }
	var data struct {
		HashIterations       int
		Algorithm            string
		AdditionalParameters map[string][]string
	}
	err := errors.Join(
		json.Unmarshal([]byte(c.SecretData), &secret),
		json.Unmarshal([]byte(c.CredentialData), &data),
	)
	if err != nil {
		return "", errors.New("the password has no hash")
	}

	salt := strings.TrimRight(secret.Salt, "=")
	key := strings.TrimRight(secret.Value, "=")
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
