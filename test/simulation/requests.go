// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What an API server answers when it does not do what it was asked for.
var (
	anything    = schema.GroupResource{Group: "any", Resource: "things"}
	ErrConflict = apierrors.NewConflict(anything, "x", errors.New("changed"))
	ErrExists   = apierrors.NewAlreadyExists(anything, "x")
	ErrNotFound = apierrors.NewNotFound(anything, "x")
	ErrServer   = apierrors.NewInternalError(errors.New("broken"))
	// What a client says when there is no answer.
	ErrTimeout = errors.New("timeout")
	ErrDead    = errors.New("the controller is dead")
)

// Outcome is what becomes of a request.
type Outcome int

// Outcomes of requests.
const (
	CarriedOut Outcome = iota
	// Refused requests are answered with an error of the server.
	Refused
	// Conflicted ones are answered with a conflict although nothing changed.
	Conflicted
	// Lost ones are carried out, but the answer does not arrive.
	Lost
	// Belated ones are carried out some time after their sender has given up.
	Belated
	// KilledBefore and KilledAfter kill the controller around the request.
	KilledBefore
	KilledAfter
	// KilledWhile kills it with the request under way.
	KilledWhile
	// Deposed makes the controller one that has lost its lead without noticing: all that it still does comes late.
	Deposed
	Outcomes
)

// String says what becomes of a request.
func (o Outcome) String() string {
	return [Outcomes]string{
		"carried out", "refused", "conflict", "answer lost", "comes late", "killed before", "killed after", "killed, request comes late", "deposed",
	}[o]
}

// Sender is a controller that sends requests.
type Sender struct {
	Dead, Deposed bool
	// refuted means that a sender which was deposed is wrong to believe that its requests were carried out.
	refuted bool
	// Accepted and Refused are the numbers of requests that changed something, and of those that a server refused.
	Accepted, Refused int
	// denied are the requests that a server has decided against since a Worker has asked.
	denied []string
	// Draw draws what becomes of a request.
	Draw func() Outcome
	// DrawWrite is Draw for requests that change something; nil for Draw.
	DrawWrite func() Outcome
	// Interlude lets other things happen before a request.
	Interlude func()
	// Later carries a request out at some other time.
	Later func(request func())
}

// Send sends a request that changes something. known means that the sender learns of the result, or that its successor sees it
// from the start. A sender that was deposed goes on as if all was well, with the answer that is given; what it sends arrives when
// its successor is at work. Once a server refuses one of these requests, later ones do not arrive: they are what follows from another answer.
func Send[T any](s *Sender, answer T, do func(known bool) (T, error)) (T, error) {
	unheard := func() error {
		heard := s.denied
		_, err := do(false)
		s.denied = heard
		return err
	}
	later := func() { s.Later(func() { _ = unheard() }) }
	switch {
	case s.Deposed:
		s.Later(func() { s.believed(unheard) })
		return answer, nil
	case s.Dead:
		return answer, ErrDead
	}
	s.Interlude()
	switch s.drawWrite() {
	case Refused:
		s.Refused++
		return answer, ErrServer
	case Conflicted:
		return answer, ErrConflict
	case Lost:
		_ = unheard()
		return answer, ErrTimeout
	case Belated:
		later()
		return answer, ErrTimeout
	case KilledBefore:
		s.Dead = true
	case KilledAfter:
		s.Dead = true
		_, _ = do(true)
	case KilledWhile:
		s.Dead = true
		later()
	case Deposed:
		s.Deposed = true
		return Send(s, answer, do)
	default:
		result, err := do(true)
		s.count(err)
		return result, err
	}
	return answer, ErrDead
}

// believed carries out a request of a sender that was deposed, unless an earlier one was refused.
func (s *Sender) believed(send func() error) {
	if !s.refuted && refuses(send()) {
		s.refuted = true
	}
}

// refuses returns whether an answer is one after which a controller does not go on as if the request was carried out. After other answers,
// which are about another state than it knew, it may.
func refuses(err error) bool {
	return err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err)
}

// Refute notes that a request has failed without which a controller makes none of the next ones.
func (s *Sender) Refute() { s.refuted = s.refuted || s.Deposed }

func (s *Sender) drawWrite() Outcome {
	if s.DrawWrite == nil {
		return s.Draw()
	}
	return s.DrawWrite()
}

// count counts the answer to a request. That an object has changed or is gone refuses nothing.
func (s *Sender) count(err error) {
	switch {
	case err == nil:
		s.Accepted++
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		s.Refused++
	}
}

// Denied notes the answer to a request, which is named by its verb, its kind and its object. A server that fails, or asks for fewer requests,
// decides nothing, and neither does one that shows another state.
func (s *Sender) Denied(request string, err error) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return
	}
	switch code := answer.Status().Code; {
	case code == http.StatusInsufficientStorage:
		s.denied = append(s.denied, request)
	case code >= http.StatusInternalServerError, code < http.StatusBadRequest, code == http.StatusTooManyRequests, code == http.StatusNotFound,
		code == http.StatusConflict:
	default:
		s.denied = append(s.denied, request)
	}
}

// takeDenied returns the requests that were denied since the last call.
func (s *Sender) takeDenied() []string {
	denied := s.denied
	s.denied = nil
	return denied
}

// Read sends a request that changes nothing.
func Read[T any](s *Sender, do func() (T, error)) (answer T, err error) {
	if s.Dead {
		return answer, ErrDead
	}
	if !s.Deposed {
		s.Interlude()
		switch s.Draw() {
		case CarriedOut:
		case Deposed:
			s.Deposed = true
		case KilledBefore, KilledAfter, KilledWhile:
			s.Dead = true
			return answer, ErrDead
		default:
			return answer, ErrTimeout
		}
	}
	return do()
}
