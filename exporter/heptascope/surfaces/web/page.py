"""stub"""
from fastapi import APIRouter
from heptascope.surfaces.web.site import Site
def page_routes(site: Site) -> APIRouter:
    return APIRouter()
