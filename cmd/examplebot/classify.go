package main

import (
	"errors"
	"fmt"

	"github.com/weirtg/weir/classify"
)

type classifyCommand struct {
	Names []string `arg:"" name:"name" help:"Name of a function, such as messages.sendMessage."`
}

// Run prints a line for each name that is a function, and returns one error for all
// that are not. It reads no configuration.
func (c classifyCommand) Run(p process) error {
	classifier, err := classify.New(classify.Options{})
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range c.Names {
		if !classify.Known(name) {
			errs = append(errs, fmt.Errorf("%q is not the name of a function; did you mean %s?", name, classify.Nearest(name)))
			continue
		}
		if _, err := fmt.Fprintf(p.stdout, "%s\t%v\n", name, classifier.Name(name)); err != nil {
			return err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	return nil
}
