from discreet.schema.columns import Boolean as Boolean
from discreet.schema.columns import Category as Category
from discreet.schema.columns import Number as Number
from discreet.schema.columns import Ordinal as Ordinal
from discreet.schema.columns import SchemaError as SchemaError
from discreet.schema.columns import Target as Target
from discreet.schema.schema import Schema as Schema
