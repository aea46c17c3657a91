package transfer_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/cmd/selvage/internal/transfer"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/store/storetest"
)

// TestImportNumberAgain shows that a number is rejected while its resource does not exist. Repeating the
// import once the resource exists assigns the number to the resource, even if an import has created the
// number before and was then interrupted. An existing number is not rejected if its resource is gone.
func TestImportNumberAgain(t *testing.T) {
	t.Run("rejected", func(t *testing.T) { testImportNumberAgain(t, false) })
	t.Run("interrupted", func(t *testing.T) { testImportNumberAgain(t, true) })
}

func testImportNumberAgain(t *testing.T, interrupted bool) {
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	f := fabric.New(fabric.Config{Stores: rows.Fabric(), Ring: storetest.Ring(t, dir, rows, nil)})
	project, err := f.Projects.Create(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}

	im := &transfer.Importer{Fabric: f}
	number := &transfer.Number{
		ID:         uuid.NewString(),
		ProjectID:  project.ID,
		Number:     "+4930123456",
		ResourceID: uuid.NewString(),
		Created:    time.Now(),
	}
	wantStatus := func(want transfer.Status) (note string) {
		t.Helper()
		o, err := im.Import(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		if o.Status != want {
			t.Errorf("the number is %s (%v), want %s", o.Status, o.Err, want)
		}
		return o.Note
	}

	wantStatus(transfer.Rejected)
	missing := number.ResourceID
	number.ResourceID = storetest.AddSubscriber(t, rows, project.ID, "ada", time.Now())
	if interrupted {
		err := f.PhoneNumbers.Import(t.Context(), fabric.PhoneNumber{
			ID:        number.ID,
			ProjectID: project.ID,
			Number:    number.Number,
		}, false)
		if err != nil {
			t.Fatal(err)
		}

		ada := number.ResourceID
		number.ResourceID = missing
		if note := wantStatus(transfer.Exists); note == "" {
			t.Error("there is no note about the missing resource")
		}
		number.ResourceID = ada
	} else {
		wantStatus(transfer.Created)
	}
	wantStatus(transfer.Exists)
	found, err := f.PhoneNumbers.Find(t.Context(), project.ID, number.ID)
	if err != nil {
		t.Fatal(err)
	}
	if found.ResourceID != number.ResourceID {
		t.Errorf("the number belongs to the resource %q, want %q", found.ResourceID, number.ResourceID)
	}
}
