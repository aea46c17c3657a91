package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// A deletedPage is the page of a deleted subscriber, from which the person can still be erased.
type deletedPage struct {
	ID, Name, Base string
	MayErase       bool
	Faults         faults
}

// deletedPage shows a deleted subscriber. If its name is not kept, the error is problem.NotFound.
func (a *subscriberPages) deletedPage(v *visit, code int, wrong faults) error {
	id, name, err := a.deletedSubscriber(v)
	if err != nil {
		return err
	}
	return a.page(v, code, name, "subscriber_deleted",
		deletedPage{ID: id, Name: name, Base: v.base(), MayErase: v.mayIn(operator.Write), Faults: wrong})
}

// deletedSubscriber returns the id in the visit's path, and the name that the deleted subscriber with
// this id had. If the name was erased with another account of the person, it returns the id as the name.
func (a *subscriberPages) deletedSubscriber(v *visit) (id, name string, err error) {
	id = strings.ToLower(v.r.PathValue("id"))
	if !uuid.MatchString(id) {
		return "", "", problem.NoSuch("subscriber")
	}
	name, err = a.Fabric.Subscribers.DeletedName(v.r.Context(), v.project.ID, id)
	if errors.Is(err, problem.NotFound) {
		return "", "", problem.NoSuch("subscriber")
	}
	if err != nil {
		return "", "", err
	}
	return id, cmp.Or(name, id), nil
}

// eraseDeleted serves POST /dashboard/projects/{project}/subscribers/{id}/erase. It erases a
// subscriber that was deleted before, and has not been restored by an import since.
func (a *subscriberPages) eraseDeleted(v *visit) error {
	id, name, err := a.deletedSubscriber(v)
	if err != nil {
		return err
	}
	if v.form.Get("confirm") != name {
		return a.deletedPage(v, http.StatusUnprocessableEntity,
			faultAt("confirm", "The name does not match. Nothing was erased."))
	}
	_, err = a.Fabric.Subscribers.EraseDeleted(v.r.Context(), v.project.ID, id)
	switch {
	case errors.Is(err, problem.Conflict):
		return v.redirect(v.base() + "/subscribers/" + id + "?done=noterased")
	case err != nil:
		return err
	}
	return v.redirect(v.base() + "/subscribers?done=remainserased")
}
