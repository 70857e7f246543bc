// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lookupTimeout bounds how long the cluster may take to say which kinds have a name.
const lookupTimeout = 5 * time.Second

// Argument is the one object that a command was given: KIND/NAME, or NAME alone, which is looked up among all kinds.
type Argument[T any] struct {
	// Name is the name of the object.
	Name  string
	kinds []For[T]
	// given is the index of the kind before the slash; -1 for a name alone.
	given int
}

// Parse returns the one object that a command which takes these kinds was given.
func Parse[T any](kinds []For[T], args []string) (Argument[T], error) {
	a := Argument[T]{kinds: kinds, given: -1}
	var titles, forms []string
	for _, k := range kinds {
		titles, forms = append(titles, k.Title), append(forms, k.Names[0]+"/NAME")
	}
	title, form := Join(titles, "or"), Join(append([]string{"NAME"}, forms...), "or")
	switch {
	case len(args) == 0:
		return a, fmt.Errorf("NAME: give the name of a %s; `kubectl jobset list` lists them", title)
	case len(args) > 1:
		return a, fmt.Errorf("NAME: must be one %s, not %d (%s)", title, len(args), strings.Join(args, ", "))
	}
	resource, name, slash := strings.Cut(args[0], "/")
	if !slash {
		a.Name = args[0]
		if a.Name == "" {
			return a, fmt.Errorf("NAME: must be %s, not %q", form, args[0])
		}
		return a, nil
	}
	if a.given = slices.IndexFunc(kinds, func(k For[T]) bool { return k.Accepts(resource) }); a.given < 0 {
		return a, fmt.Errorf("NAME: must be a %s, as %s, not %q", title, form, args[0])
	}
	if name == "" || strings.Contains(name, "/") {
		return a, fmt.Errorf("NAME: must be %s, not %q", form, args[0])
	}
	a.Name = name
	return a, nil
}

// Given returns the kind before the slash; false for a name alone.
func (a Argument[T]) Given() (kind For[T], given bool) {
	if a.given < 0 {
		return kind, false
	}
	return a.kinds[a.given], true
}

// FindToRead returns the kind of the object, for a command that changes nothing. Of several kinds that have the name
// the first one is read, and a note on the standard error says so.
func FindToRead[T any](ctx context.Context, f *Factory, a Argument[T]) (For[T], error) {
	if kind, given := a.Given(); given {
		return kind, nil
	}
	c, err := f.Clients()
	if err != nil {
		return For[T]{}, err
	}
	l := lookup(ctx, c, a.Name)
	if err := a.noObject(ctx, c, l); err != nil {
		return a.kinds[0], err
	}
	kind, err := a.first(ctx, c, l)
	if err == nil && len(l.found) > 1 {
		fmt.Fprintf(f.ErrOut, "note: %s is also the name of %s; this is %s\n", a.Name, Join(a.named(l.found[1:]), "and"), a.argument(kind.Kind))
	}
	return kind, err
}

// ReadObject returns the body of a command that takes one object and changes nothing: it finds the kind of the object, and runs what the
// command does. The flags are checked first, without a question to the cluster.
func ReadObject[T any](f *Factory, kinds []For[T], check func(*cobra.Command) error,
	run func(ctx context.Context, kind For[T], name string) error) func(*cobra.Command, []string) error {
	return ReadWhateverIsLeft(f, kinds, check, func(ctx context.Context, kind For[T], name string, none *NoObjectError) error {
		if none != nil {
			return none
		}
		return run(ctx, kind, name)
	})
}

// ReadWhateverIsLeft is ReadObject for a command that has something to say about a name which no kind has. Then run gets the first kind,
// and the error that says so; it is nil for an object that may exist.
func ReadWhateverIsLeft[T any](f *Factory, kinds []For[T], check func(*cobra.Command) error,
	run func(ctx context.Context, kind For[T], name string, none *NoObjectError) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		arg, err := Parse(kinds, args)
		if err != nil {
			return err
		}
		if err := check(cmd); err != nil {
			return err
		}
		var none *NoObjectError
		kind, err := FindToRead(cmd.Context(), f, arg)
		if err != nil && !errors.As(err, &none) {
			return err
		}
		return run(cmd.Context(), kind, arg.Name, none)
	}
}

// FindToChange returns the kind of the object, for a command that changes it. A name that several kinds have is an
// error, and so is one that a kind may have which comes before.
func FindToChange[T any](ctx context.Context, c *Clients, a Argument[T]) (For[T], error) {
	if kind, given := a.Given(); given {
		return kind, nil
	}
	l := lookup(ctx, c, a.Name)
	if err := a.noObject(ctx, c, l); err != nil {
		return a.kinds[0], err
	}
	kind, err := a.first(ctx, c, l)
	if err != nil || len(l.found) == 0 {
		return kind, err
	}
	if len(l.found) > 1 {
		return kind, a.ambiguous(l.found)
	}
	// A kind that comes later would not have been meant before either.
	if at := slices.IndexFunc(l.unknown, func(k Kind) bool { return a.takes(k) >= 0 && place(k) < place(l.found[0]) }); at >= 0 {
		return kind, fmt.Errorf("NAME: %s exists, and whether %s does could not be found out: %w; give the one that you mean",
			a.argument(kind.Kind), a.argument(l.unknown[at]), l.errors[at])
	}
	return kind, nil
}

// place is the place of a kind in the order of kinds.
func place(k Kind) int { return slices.IndexFunc(Kinds, k.is) }

// takes returns the index of a kind among those that the command takes; -1 for another one.
func (a Argument[T]) takes(k Kind) int {
	return slices.IndexFunc(a.kinds, func(taken For[T]) bool { return taken.is(k) })
}

func (a Argument[T]) ambiguous(found []Kind) error {
	return fmt.Errorf("NAME: %s is the name of several objects; give one of %s", a.Name, strings.Join(a.named(found), ", "))
}

// argument is KIND/NAME with the shortest word for the kind.
func (a Argument[T]) argument(k Kind) string { return k.Short() + "/" + a.Name }

func (a Argument[T]) named(kinds []Kind) (out []string) {
	for _, k := range kinds {
		out = append(out, a.argument(k))
	}
	return out
}

// first returns the kind that the name means, whichever kinds the command takes: the first one that has an object of
// the name. If none is known to have one, it is the first of the command that may have one, or else its first one,
// whose request then says what is wrong.
func (a Argument[T]) first(ctx context.Context, c *Clients, l looked) (kind For[T], err error) {
	if len(l.found) == 0 {
		at := slices.IndexFunc(a.kinds, func(k For[T]) bool { return slices.ContainsFunc(l.mayHave(), k.is) })
		return a.kinds[max(at, 0)], nil
	}
	at := a.takes(l.found[0])
	switch {
	case at >= 0:
		return a.kinds[at], nil
	case len(l.found) > 1:
		return kind, a.ambiguous(l.found)
	}
	var titles []string
	for _, k := range a.kinds {
		titles = append(titles, k.Title)
	}
	return kind, fmt.Errorf("NAME: %s is a %s; must be a %s%s", a.Name, l.found[0].Title, Join(titles, "or"),
		partsOf(ctx, c, l.found[0], a.Name))
}

// looked is what is known about a name.
type looked struct {
	// found are the kinds that have an object of the name. unknown are the kinds that may have one: the lookup failed, with the errors.
	found, unknown []Kind
	errors         []error
	// absent are the kinds that the cluster does not serve.
	absent []Kind
}

// mayHave returns the kinds that may have an object of the name. While any of them cannot be asked, one that is not
// served may be missing only for now.
func (l looked) mayHave() []Kind {
	if len(l.unknown) == 0 {
		return nil
	}
	return slices.Concat(l.unknown, l.absent)
}

// lookup asks which kinds have an object of the name in the namespace.
func lookup(ctx context.Context, c *Clients, name string) (l looked) {
	ctx, stop := context.WithTimeout(ctx, lookupTimeout)
	defer stop()
	errs := make([]error, len(Kinds))
	var all sync.WaitGroup
	for i, k := range Kinds {
		all.Go(func() {
			_, errs[i] = c.Metadata.Resource(k.Resource()).Namespace(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		})
	}
	all.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
			l.found = append(l.found, Kinds[i])
		case apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err): // of no API server that knows the kind
			l.absent = append(l.absent, Kinds[i])
		case !apierrors.IsNotFound(err):
			l.unknown, l.errors = append(l.unknown, Kinds[i]), append(l.errors, err)
		}
	}
	return l
}
