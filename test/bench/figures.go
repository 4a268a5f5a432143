package main

import "context"

// figure is a row that is no comparison of rates: memory, starts, growth.
type figure struct {
	id      string
	what    string
	measure func(context.Context, *comparison) error
}

var figures []figure
