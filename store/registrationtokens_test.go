package store

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// permit sets who may register clients in a project.
func permit(t *testing.T, s *Store, projectID string, mode fabric.ClientRegistration) {
	t.Helper()
	_, err := s.UpdateProject(t.Context(), projectID, fabric.ProjectChange{ClientRegistration: &mode}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
}

// newRegistrationToken inserts a token of the project p.
func newRegistrationToken(t *testing.T, s *Store, maxUses int64) fabric.RegistrationToken {
	t.Helper()
	id := newID()
	token := fabric.RegistrationToken{
		ID:        id,
		ProjectID: "p",
		Hash:      id,
		Created:   time.Now(),
		Expires:   time.Now().Add(time.Hour),
		MaxUses:   maxUses,
	}
	if err := s.CreateRegistrationToken(t.Context(), token, nil); err != nil {
		t.Fatal(err)
	}
	return token
}

// selfRegistered returns a client of project p that registered itself. by is its RegisteredBy.
func selfRegistered(by string) idp.Client {
	return idp.Client{
		ID:               newID(),
		ProjectID:        "p",
		RegisteredBy:     by,
		RegistrationHash: "hash",
		Created:          time.Now(),
	}
}

// TestRegisterClient shows that a client is registered only while its project and its token accept
// it, and that a refused registration does not use the token.
func TestRegisterClient(t *testing.T) { EachDatabase(t, testRegisterClient) }

func testRegisterClient(t *testing.T, c Config) {
	s, _, ahead := grantRows(t, c)
	ctx := t.Context()
	twice := newRegistrationToken(t, s, 2)
	register := func(by string, most int) error {
		client := selfRegistered(by)
		client.Created = time.Now().Add(time.Duration(ahead.Load()))
		return s.RegisterClient(ctx, client, most)
	}

	refused := func(what, by string) {
		t.Helper()
		if err := register(by, 0); !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("%s: RegisterClient = %v, want unauthenticated", what, err)
		}
	}

	accepted := func(what, by string) {
		t.Helper()
		if err := register(by, 0); err != nil {
			t.Errorf("%s: RegisterClient = %v", what, err)
		}
	}

	refused("no project accepts tokens", twice.ID)
	permit(t, s, "p", fabric.ClientsByToken)
	refused("without a token", idp.RegisteredOpenly)
	refused("an unknown token", newID())
	accepted("the first use", twice.ID)
	if err := register(twice.ID, 1); !errors.Is(err, problem.Forbidden) {
		t.Errorf("more clients than permitted: RegisterClient = %v, want forbidden", err)
	}
	accepted("the second use", twice.ID)
	refused("a third use", twice.ID)

	permit(t, s, "p", fabric.ClientsOpen)
	accepted("an open project", idp.RegisteredOpenly)
	other := newRegistrationToken(t, s, 0)
	accepted("a token of an open project", other.ID)
	ahead.Store(int64(2 * time.Hour))
	refused("an expired token", other.ID)
	ahead.Store(0)
	if err := s.RevokeRegistrationToken(ctx, "p", other.ID, time.Now()); err != nil {
		t.Error(err)
	}
	refused("a revoked token", other.ID)

	found, err := s.ListRegistrationTokens(ctx, "p", "", page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	var uses []int64
	for _, token := range found.Items {
		uses = append(uses, token.Uses)
	}
	if !slices.Equal(uses, []int64{2, 1}) {
		t.Errorf("the tokens were used %d times, want [2 1]", uses)
	}
	if err := s.RevokeRegistrationToken(ctx, "other", twice.ID, time.Now()); !errors.Is(err, problem.NotFound) {
		t.Errorf("revoking a token of another project = %v, want not found", err)
	}
}

// TestRegistrationRaces shows that only as many concurrent registrations succeed as the token and
// the project permit.
func TestRegistrationRaces(t *testing.T) { EachDatabase(t, testRegistrationRaces) }

func testRegistrationRaces(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	permit(t, s, "p", fabric.ClientsOpen)
	registerAtOnce := func(by string, most int) (succeeded int64) {
		var registered atomic.Int64
		register := func() {
			err := s.RegisterClient(t.Context(), selfRegistered(by), most)
			expect(t, "RegisterClient", err, problem.Unauthenticated, problem.Forbidden)
			if err == nil {
				registered.Add(1)
			}
		}
		together(slices.Repeat([]func(){register}, 50)...)
		return registered.Load()
	}

	if n := registerAtOnce(newRegistrationToken(t, s, 1).ID, 0); n != 1 {
		t.Errorf("a token for one client registers %d clients, want 1", n)
	}
	if n := registerAtOnce(idp.RegisteredOpenly, 4); n != 3 {
		t.Errorf("a project with one of four permitted clients registers %d more, want 3", n)
	}
}

// TestOpenProject shows that only one project can be open, and that it is found first.
func TestOpenProject(t *testing.T) { EachDatabase(t, testOpenProject) }

func testOpenProject(t *testing.T, c Config) {
	s := opened(t, c)
	ctx := t.Context()
	if _, err := s.FindRegistrar(ctx); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindRegistrar without projects = %v, want not found", err)
	}
	for _, id := range []string{"a", "b", "c"} {
		err := s.CreateProject(ctx, fabric.Project{ID: id, Name: id, ClientRegistration: fabric.ClientsOff})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.FindRegistrar(ctx); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindRegistrar without a project that accepts clients = %v, want not found", err)
	}

	wantRegistrar := func(want string) {
		t.Helper()
		registrar, err := s.FindRegistrar(ctx)
		if err != nil || registrar.ID != want {
			t.Errorf("FindRegistrar = %q, %v, want %s", registrar.ID, err, want)
		}
	}
	permit(t, s, "a", fabric.ClientsByToken)
	wantRegistrar("a")
	permit(t, s, "b", fabric.ClientsOpen)
	wantRegistrar("b")

	open := fabric.ClientsOpen
	_, err := s.UpdateProject(ctx, "c", fabric.ProjectChange{ClientRegistration: &open}, time.Now())
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("opening a second project = %v, want a conflict", err)
	}
	permit(t, s, "b", fabric.ClientsOpen) // registration is already open
	permit(t, s, "b", fabric.ClientsOff)
	permit(t, s, "c", fabric.ClientsOpen)
}
