package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

func TestCreateSubscriberRace(t *testing.T) { store.EachDatabase(t, testCreateSubscriberRace) }

func testCreateSubscriberRace(t *testing.T, c store.Config) {
	tests := []struct {
		name   string
		create func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address)
	}{
		{"one reference", func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address) {
			return subscriber(p, "", "ada", fmt.Sprint("ada", i))
		}},
		{"one email", func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address) {
			return subscriber(p, "ada@example.com", "", fmt.Sprint("ada", i))
		}},
		{"one address", func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address) {
			return subscriber(p, fmt.Sprintf("ada%d@example.com", i), "", "ada")
		}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			rows, p := fabricRows(t, c)
			won := race(t, problem.Conflict, func(i int) error {
				sub, address := tt.create(p, i)
				return rows.CreateSubscriber(ctx, sub, address)
			})
			if won != 1 {
				t.Errorf("%d of %d concurrent calls of CreateSubscriber succeed, want 1", won, crowd)
			}

			found, err := rows.ListSubscribers(ctx, p.ID, page.Query{Size: crowd})
			if err != nil || len(found.Items) != 1 {
				t.Errorf("ListSubscribers = %d rows, %v, want 1", len(found.Items), err)
			}

			addresses, err := rows.ListAddresses(ctx, p.ID, fabric.AddressFilter{}, page.Query{Size: crowd})
			if err != nil || len(addresses.Items) != 1 {
				t.Errorf("ListAddresses = %d rows, %v, want 1", len(addresses.Items), err)
			}
		})
	}
}

func TestUniqueWithinProject(t *testing.T) { store.EachDatabase(t, testUniqueWithinProject) }

func testUniqueWithinProject(t *testing.T, c store.Config) {
	rows, p := fabricRows(t, c)
	for _, project := range []fabric.Project{p, newProject(t, rows)} {
		sub, address := subscriber(project, "ada@example.com", "ada", "ada")
		if err := rows.CreateSubscriber(t.Context(), sub, address); err != nil {
			t.Errorf("CreateSubscriber in project %s: %v", project.ID, err)
		}
	}

	for range 2 { // without email and reference: NULLs never conflict
		sub, address := subscriber(p, "", "", newID())
		if err := rows.CreateSubscriber(t.Context(), sub, address); err != nil {
			t.Errorf("CreateSubscriber without email and reference: %v", err)
		}
	}

	nowhere := fabric.Project{ID: newID()}
	sub, address := subscriber(nowhere, "ada@example.com", "", "ada")
	if err := rows.CreateSubscriber(t.Context(), sub, address); !errors.Is(err, problem.NotFound) {
		t.Errorf("CreateSubscriber in an unknown project: got %v, want not found", err)
	}
}
